// Package rocketmq runs the built program against real brokers, with messages of RocketMQ's own Go client.
package rocketmq

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	mq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"

	"github.com/rsetl/rsetl/test/binary"
	"github.com/rsetl/rsetl/test/services"
)

func TestMain(m *testing.M) {
	rlog.SetLogLevel("fatal")
	code := m.Run()
	binary.Cleanup()
	os.Exit(code)
}

// produce sends n messages, numbered from first, with the Go client, in batches, to queues in turn.
func produce(t testing.TB, c *services.Cluster, topic string, first, n int, text func(i int) string) {
	t.Helper()
	p := newProducer(t, c)
	defer func() { p.Shutdown() }()
	r, err := c.Client.Route(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	const size = 100
	for from := first; from < first+n; from += size {
		var batch []*primitive.Message
		for i := from; i < min(from+size, first+n); i++ {
			m := primitive.NewMessage(topic, []byte(text(i)))
			m.WithKeys([]string{fmt.Sprint("k", i)})
			m.WithTag([]string{"a", "b", "c"}[i%3])
			m.WithProperty("n", fmt.Sprint(i))
			batch = append(batch, m)
		}
		q := r.Write[from/size%len(r.Write)]
		for _, m := range batch {
			m.Queue = &primitive.MessageQueue{Topic: topic, BrokerName: q.Broker, QueueId: q.ID}
		}
		for try := 0; ; try++ {
			res, err := p.SendSync(context.Background(), batch...)
			if err == nil && res.Status == primitive.SendOK {
				break
			}
			if try == 600 {
				t.Errorf("send: %v %v", res, err)
				return
			}
			if try%20 == 19 { // a client that a broker's end has confused
				p.Shutdown()
				p = newProducer(t, c)
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
}

func newProducer(t testing.TB, c *services.Cluster) mq.Producer {
	t.Helper()
	p, err := mq.NewProducer(producer.WithNsResolver(primitive.NewPassthroughResolver([]string{c.NameServer})), producer.WithRetry(2),
		producer.WithInstanceName(services.Unique("p")), producer.WithGroupName(services.Unique("g")), producer.WithQueueSelector(producer.NewManualQueueSelector()))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// skipRace skips what runs a consumer of the Go client.
func skipRace(t testing.TB) {
	t.Helper()
	if race {
		t.Skip("RocketMQ's Go client has a data race of its own when a consumer shuts down: run this test without -race")
	}
}

// process is one running rsetl.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended, with err
	err  error
	mu   sync.Mutex
	log  bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// start runs `rsetl run` on the pipeline with a state of its own in dir.
func start(t testing.TB, dir, yaml string, args ...string) *process {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "p.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &process{done: make(chan struct{})}
	p.cmd = exec.Command(binary.Path(t), append([]string{"run", "--state-dir", filepath.Join(dir, "state")}, append(args, file)...)...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	return p
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end waits for the process's end.
func (p *process) end(t testing.TB) error {
	t.Helper()
	select {
	case <-p.done:
		return p.err
	case <-time.After(2 * time.Minute):
		p.cmd.Process.Kill()
		t.Fatalf("rsetl doesn't end:\n%s", p.output())
		return nil
	}
}

func (p *process) stop(t testing.TB) {
	t.Helper()
	await(t, time.Minute, "a running instance", func() bool { return strings.Contains(p.output(), "members of the consumer group") })
	p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.end(t); err != nil {
		t.Fatalf("rsetl: %v\n%s", err, p.output())
	}
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// once runs the pipeline to its end.
func once(t testing.TB, dir, yaml string) string {
	t.Helper()
	p := start(t, dir, yaml, "--once")
	if err := p.end(t); err != nil {
		t.Fatalf("rsetl: %v\n%s", err, p.output())
	}
	return p.output()
}

// await waits until ok holds.
func await(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, limit)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// lines are a file's rows, none where it isn't there.
func lines(t testing.TB, path string) []map[string]any {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []map[string]any
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		row := map[string]any{}
		d := json.NewDecoder(bytes.NewReader(s.Bytes()))
		d.UseNumber()
		if err := d.Decode(&row); err != nil {
			t.Fatalf("%s: %v: %s", path, err, s.Bytes())
		}
		out = append(out, row)
	}
	return out
}

// offsets are the group's offsets and the queues' ends.
func offsets(t testing.TB, c *services.Cluster, group, topic string) (sum, ends int64) {
	t.Helper()
	r, err := c.Client.Route(t.Context(), topic)
	if err != nil {
		return -1, 0
	}
	for _, q := range r.Read {
		at, _, err := c.Client.Offset(t.Context(), r.Masters[q.Broker], group, q)
		if err != nil {
			return -1, 0
		}
		_, end, err := c.Client.Bounds(t.Context(), r.Masters[q.Broker], q)
		if err != nil {
			return -1, 0
		}
		sum, ends = sum+at, ends+end
	}
	return sum, ends
}

func unindent(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\t", "  ") + "\n" }
