package services

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rsetl/rsetl/internal/rocketmq"
)

// Cluster is a name server and the masters' addresses of the brokers broker-a and broker-b.
type Cluster struct {
	NameServer string
	Brokers    []string
	Client     *rocketmq.Client
}

// turn is held while this process has the cluster: the tests of a package kill brokers, and those of another want them.
var turn struct {
	once sync.Once
	file *os.File
}

func waitTurn(t testing.TB) {
	turn.once.Do(func() {
		f, err := os.OpenFile(filepath.Join(os.TempDir(), "rsetl-test-rocketmq.lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX) // until the process ends
		}
		if err != nil {
			t.Fatal(err)
		}
		turn.file = f
	})
}

// RocketMQ is a running cluster. Tests share it: each uses topics and groups of its own, see Topic and Unique.
func RocketMQ(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{NameServer: env(t, RocketMQEnv, "rocketmq"), Brokers: strings.Split(env(t, BrokersEnv, "rocketmq"), ",")}
	waitTurn(t)
	c.Client = rocketmq.New(rocketmq.Options{NameServers: []string{c.NameServer}})
	t.Cleanup(c.Client.Close)
	return c
}

// Topic makes a topic with so many queues on each broker.
func (c *Cluster) Topic(t testing.TB, queues int) string {
	t.Helper()
	return c.TopicWith(t, queues, "")
}

// TopicWith is Topic with attributes, as in +queue.type=BatchCQ.
func (c *Cluster) TopicWith(t testing.TB, queues int, attributes string) string {
	t.Helper()
	name := Unique("t")
	for _, a := range c.Brokers {
		if err := c.Client.CreateTopic(t.Context(), a, name, queues, queues, 6, attributes); err != nil {
			t.Fatal(err)
		}
	}
	c.Route(t, name, queues*len(c.Brokers))
	return name
}

// Route waits until the topic has so many queues at the name server.
func (c *Cluster) Route(t testing.TB, topic string, queues int) *rocketmq.Route {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		r, err := c.Client.Route(ctx, topic)
		if err == nil && len(r.Read) == queues {
			return r
		}
		select {
		case <-ctx.Done():
			t.Fatalf("topic %s: %v %v", topic, r, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Broker runs `services broker stop|kill|start a|b`. A test that stops one has it started again at its end.
func (c *Cluster) Broker(t testing.TB, verb, which string) {
	t.Helper()
	c.script(t, "broker", verb, which)
}

// Secured starts the broker c or d, which is a cluster of its own with access control, and removes it at the test's end. Its client has
// the superuser's keys. The name server is the one of all clusters.
func (c *Cluster) Secured(t testing.TB, which string) *Cluster {
	t.Helper()
	t.Cleanup(func() { c.script(t, "broker", "remove", which) })
	lines := strings.Fields(c.script(t, "broker", "start", which))
	s := &Cluster{NameServer: c.NameServer, Brokers: lines[len(lines)-1:]}
	s.Client = rocketmq.New(rocketmq.Options{NameServers: []string{s.NameServer}, AccessKey: "key-" + which, SecretKey: "secret-of-" + which})
	t.Cleanup(s.Client.Close)
	return s
}

// Admin runs RocketMQ's admin tool.
func (c *Cluster) Admin(t testing.TB, args ...string) string {
	t.Helper()
	return c.script(t, append([]string{"mqadmin"}, args...)...)
}

func (c *Cluster) script(t testing.TB, args ...string) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(filepath.Dir(file), "services"), args...)
	cmd.Env = os.Environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// JavaRun is n messages "java I PADDING" to a topic, in lists of that length; 1: one by one. Long ones are compressed by ZLIB, LZ4 or ZSTD.
type JavaRun struct {
	Topic             string
	N, Batch, Padding int
	Compression       string
}

// Java sends with RocketMQ's Java client.
func (c *Cluster) Java(t testing.TB, runs ...JavaRun) {
	t.Helper()
	args := []string{"produce"}
	for _, r := range runs {
		args = append(args, r.Topic, strconv.Itoa(r.N), strconv.Itoa(r.Batch), strconv.Itoa(r.Padding), r.Compression)
	}
	c.script(t, args...)
}
