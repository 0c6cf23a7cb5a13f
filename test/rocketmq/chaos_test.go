package rocketmq

import (
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/test/services"
)

var (
	chaosMessages = flag.Int("messages", 60_000, "messages of the chaos run")
	chaosKills    = flag.Int("kills", 4, "instances killed in the chaos run")
	chaosRestarts = flag.Int("restarts", 1, "broker restarts in the chaos run")
	chaosSeed     = flag.Uint64("seed", 0, "of the chaos run; 0: by the time")
)

// fleet keeps instances running: one that ends by itself is started again, as a service manager does.
type fleet struct {
	t     *testing.T
	yaml  func(i int) string
	dir   string
	mu    sync.Mutex
	procs map[int]*process
	ends  atomic.Int64
	logs  []string
	all   []*process // that were ever started, and which instances they are
	names []int
	over  bool
}

func (f *fleet) start(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.startLocked(i)
}

func (f *fleet) startLocked(i int) {
	p := start(f.t, filepath.Join(f.dir, fmt.Sprint("i", i)), f.yaml(i))
	f.procs[i] = p
	f.all = append(f.all, p)
	f.names = append(f.names, i)
	go func() {
		<-p.done
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.procs[i] != p || f.over {
			return
		}
		f.ends.Add(1)
		f.logs = append(f.logs, tail(p.output(), 3))
		f.startLocked(i)
	}()
}

func tail(s string, n int) string {
	l := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(l[max(0, len(l)-n):], "\n")
}

// take takes the instance out of the fleet's care.
func (f *fleet) take(i int) *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.procs[i]
	delete(f.procs, i)
	return p
}

// stop ends an instance. One that has just lost a queue before it could commit ends with an error, as it may at any other time.
func (f *fleet) stop(i int) {
	p := f.take(i)
	await(f.t, time.Minute, "a running instance", func() bool {
		return p.ended() || strings.Contains(p.output(), "members of the consumer group")
	})
	p.cmd.Process.Signal(syscall.SIGTERM)
	if p.end(f.t) != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ends.Add(1)
		f.logs = append(f.logs, tail(p.output(), 3))
	}
}

func (f *fleet) kill(i int) {
	f.take(i).kill()
}

// target is where the instances write.
type target struct {
	yaml  func(i int) string
	ahead func() string // what is wrong with the broker's offsets compared with what is there; nil: not looked at
	rows  func() []result
	also  func() []result // what another sink has; nil: there is none
	exact bool            // each message once
}

type result struct {
	queue   rocketmq.Queue
	offset  int64
	message string
}

// The broker's offset is never ahead of the table, and every message is in it once; and once in Elasticsearch, where there is one.
func TestChaosMySQL(t *testing.T) {
	c := services.RocketMQ(t)
	dsn := services.MySQL(t)
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE rows_ (b VARCHAR(20), q INT, o BIGINT, message VARCHAR(100), KEY (b, q, o))"); err != nil {
		t.Fatal(err)
	}
	topic, group := c.Topic(t, 8), services.Unique("g")
	es, index, search := os.Getenv("RSETL_TEST_ELASTICSEARCH"), services.Unique("chaos"), ""
	var also func() []result
	if es != "" {
		elastic(t, "PUT", es+"/"+index, `{"settings": {"number_of_replicas": 0, "refresh_interval": "30s"}}`, nil)
		t.Cleanup(func() { elastic(t, "DELETE", es+"/"+index, "", nil) })
		search = unindent(`
  - elasticsearch: {hosts: ['` + es + `'], index: ` + index + `}
    batch: {interval: 100ms}`)
		also = func() []result { return documents(t, es, index, topic) }
	}
	chaos(t, c, topic, group, target{exact: true, also: also,
		ahead: func() string { return aheadOfTable(t, c, db, group, topic) },
		yaml: func(int) string {
			return unindent(`
steps: [{set: {b: '@broker', q: '@queue', o: '@offset'}}, {keep: [b, q, o, message]}]
sinks:
  - mysql: {dsn: '`+dsn+`', table: rows_}
    batch: {interval: 100ms}
`) + "  " + strings.TrimSpace(search) + "\n"
		},
		rows: func() (out []result) {
			rows, err := db.Query("SELECT b, q, o, message FROM rows_")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				r := result{queue: rocketmq.Queue{Topic: topic}}
				if err := rows.Scan(&r.queue.Broker, &r.queue.ID, &r.offset, &r.message); err != nil {
					t.Fatal(err)
				}
				out = append(out, r)
			}
			return out
		}})
}

// Each instance writes a file of its own: every message is in one of them.
func TestChaosFiles(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group, dir := c.Topic(t, 8), services.Unique("g"), t.TempDir()
	chaos(t, c, topic, group, target{
		yaml: func(i int) string {
			return unindent(fmt.Sprintf(`
steps: [{set: {b: '@broker', q: '@queue', o: '@offset'}}]
sinks: [{file: {path: %s/out%d}}]`, dir, i))
		},
		rows: func() (out []result) {
			for i := range 4 {
				for _, l := range lines(t, fmt.Sprintf("%s/out%d", dir, i)) {
					r := result{queue: rocketmq.Queue{Topic: topic, Broker: l["b"].(string)}, message: l["message"].(string)}
					fmt.Sscan(fmt.Sprint(l["q"], " ", l["o"]), &r.queue.ID, &r.offset)
					out = append(out, r)
				}
			}
			return out
		}})
}

// chaos lets instances of one group come, go and be killed (one, then four, then two), and kills brokers and starts them again, while messages come.
func chaos(t *testing.T, c *services.Cluster, topic, group string, to target) {
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	f := &fleet{t: t, dir: t.TempDir(), procs: map[int]*process{}, yaml: func(i int) string {
		return source(c, group, topic, ", revoke: 5s") + to.yaml(i)
	}}
	produced := make(chan struct{})
	go func() {
		defer close(produced)
		part := *chaosMessages / 20
		for i := range 20 {
			produce(t, c, topic, i*part, part, func(i int) string { return fmt.Sprint("message ", i) })
		}
	}()
	stop, sampled := make(chan struct{}), make(chan struct{})
	samples := 0
	go func() {
		defer close(sampled)
		wait := 300 * time.Millisecond
		for to.ahead != nil {
			select {
			case <-stop:
				return
			case <-time.After(wait):
			}
			begin := time.Now()
			if ahead := to.ahead(); ahead != "" {
				t.Errorf("%s", ahead)
				return
			}
			samples++
			wait = max(wait, 3*time.Since(begin)) // counting many rows takes a while
		}
	}()
	t.Cleanup(func() { f.mu.Lock(); defer f.mu.Unlock(); f.over = true })
	f.start(0)
	pause := func() { time.Sleep(time.Duration(500+rnd.IntN(2500)) * time.Millisecond) }
	pause()
	for i := 1; i < 4; i++ {
		f.start(i)
	}
	var restarts sync.WaitGroup
	defer restarts.Wait() // other tests want the broker
	turns := max(*chaosKills, *chaosRestarts, 1)
	for k := range turns {
		pause()
		if k**chaosRestarts/turns != (k+1)**chaosRestarts/turns { // evenly among the kills
			which := []string{"a", "b"}[rnd.IntN(2)]
			restarts.Wait()
			restarts.Go(func() {
				c.Broker(t, "kill", which)
				time.Sleep(time.Second)
				c.Broker(t, "start", which)
			})
		}
		if k < *chaosKills {
			i := rnd.IntN(4)
			f.kill(i)
			if rnd.IntN(2) == 0 {
				pause()
			}
			f.start(i)
		}
	}
	f.stop(3)
	f.stop(2)
	restarts.Wait()
	<-produced
	want := contents(t, c, topic)
	defer f.show()
	await(t, 4*time.Minute, "all messages committed", func() bool {
		sum, ends := offsets(t, c, group, topic)
		return sum == ends && ends == int64(len(want))
	})
	close(stop)
	<-sampled
	for i := range 2 {
		f.stop(i)
	}
	for _, rows := range []func() []result{to.rows, to.also} {
		if rows != nil {
			compare(t, f, want, rows(), to.exact, samples)
		}
	}
}

// compare tells whether each message is there, and how often.
func compare(t *testing.T, f *fleet, want map[string]string, rows []result, exact bool, samples int) {
	n, twice := 0, 0
	got := map[string]bool{}
	for _, r := range rows {
		n++
		key := fmt.Sprint(r.queue, r.offset)
		if got[key] {
			twice++
		}
		got[key] = true
		if w, ok := want[key]; !ok || w != r.message {
			t.Errorf("row %s is %q, want %q", key, r.message, w)
		}
	}
	t.Logf("%d messages, %d rows, %d twice, %d samples, %d instances ended by themselves", len(want), n, twice, samples, f.ends.Load())
	if len(got) != len(want) || exact && twice != 0 {
		t.Errorf("%d of %d messages, %d twice", len(got), len(want), twice)
	}
}

// show logs why instances ended by themselves, and where the test has failed what all of them said.
func (f *fleet) show() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.logs {
		f.t.Logf("an instance ended with\n%s", l)
	}
	if !f.t.Failed() {
		return
	}
	for n, p := range f.all {
		for _, line := range strings.Split(p.output(), "\n") {
			if strings.Contains(line, "epoch") || strings.Contains(line, "WARN") || strings.Contains(line, "given up") {
				f.t.Logf("instance %d, start %d: %s", f.names[n], n, line)
			}
		}
	}
}

func aheadOfTable(t *testing.T, c *services.Cluster, db *sql.DB, group, topic string) string {
	r, err := c.Client.Route(t.Context(), topic)
	if err != nil {
		return ""
	}
	at := map[rocketmq.Queue]int64{}
	for _, q := range r.Read {
		if n, ok, err := c.Client.Offset(t.Context(), r.Masters[q.Broker], group, q); err == nil && ok {
			at[q] = n
		}
	}
	rows, err := db.Query("SELECT b, q, COUNT(*), MAX(o) FROM rows_ GROUP BY b, q")
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	for rows.Next() {
		q := rocketmq.Queue{Topic: topic}
		var n, last int64
		if err := rows.Scan(&q.Broker, &q.ID, &n, &last); err != nil {
			return err.Error()
		}
		if at[q] > n || at[q] > last+1 {
			return fmt.Sprintf("the broker's offset of %v is %d, the table has %d rows up to %d", q, at[q], n, last)
		}
		delete(at, q)
	}
	for q, n := range at {
		if n > 0 {
			return fmt.Sprintf("the broker's offset of %v is %d, the table has none of it", q, n)
		}
	}
	return ""
}

// contents are the topic's messages by queue and offset, read without a group.
func contents(t testing.TB, c *services.Cluster, topic string) map[string]string {
	t.Helper()
	return contentsOf(t, c, topic, 16)
}

func contentsOf(t testing.TB, c *services.Cluster, topic string, queues int) map[string]string {
	t.Helper()
	r := c.Route(t, topic, queues)
	out := map[string]string{}
	sub := rocketmq.Subscription{Topic: topic, Kind: "TAG", Filter: "*"}
	for _, q := range r.Read {
		for at := int64(0); ; {
			p, err := c.Client.Pull(t.Context(), r.Masters[q.Broker], "rsetl_check", q, &sub, at, 1000, 1<<20, 0)
			if err != nil {
				t.Fatal(err)
			}
			if p.Code != rocketmq.Success {
				break
			}
			for body := p.Body; len(body) > 0; {
				var m rocketmq.Message
				if body, err = rocketmq.Next(body, &m); err != nil {
					t.Fatal(err)
				}
				out[fmt.Sprint(q, m.Offset)] = string(m.Body)
			}
			at = p.Next
		}
	}
	return out
}
