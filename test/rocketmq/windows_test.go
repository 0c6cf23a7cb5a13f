package rocketmq

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/test/services"
)

// windowed is a pipeline that counts messages of n and sums it by key and window.
func windowed(c *services.Cluster, group, topic, dsn, state string) string {
	return source(c, group, topic, "") + unindent(`
steps:
  - json: message
  - window: {tumble: 2s, time: ts, delay: 30s, by: [k], select: {n: COUNT(*), s: SUM(v)}}
sinks:
  - mysql: {dsn: '`+dsn+`', table: windows, create_table: true}
`+state)
}

// TestWindowsStandBy: of two instances on one group, one has the windows of all queues; when it is killed the other goes on with them.
func TestWindowsStandBy(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group, dir, dsn := c.Topic(t, 4), services.Unique("g"), t.TempDir(), services.MySQL(t)
	yaml := windowed(c, group, topic, dsn, "state: {remote: {dsn: '"+dsn+"', lease: 2s}}\n")
	base := time.Date(2024, 1, 1, 10, 0, 0, 0, time.UTC)
	type result struct{ n, s int64 }
	want := map[string]result{}
	const part = 8000
	send := func(phase int) {
		produce(t, c, topic, phase*part, part, func(i int) string {
			at, k := base.Add(time.Duration(i)*10*time.Millisecond), string(rune('a'+i%5))
			id := at.Truncate(2*time.Second).Format("15:04:05 ") + k
			w := want[id]
			want[id] = result{w.n + 1, w.s + int64(i)}
			return fmt.Sprintf(`{"ts":"%s","k":"%s","v":%d}`, at.Format("2006-01-02T15:04:05.000Z"), k, i)
		})
	}
	instances := map[string]*process{}
	begin := func(name string) { instances[name] = start(t, filepath.Join(dir, name), yaml) }
	owns := func(name string) bool { return strings.Count(instances[name].output(), "queue taken") >= 8 }
	begin("a")
	await(t, 20*time.Second, "the first instance to have all queues", func() bool { return owns("a") })
	begin("b")
	await(t, 20*time.Second, "the second instance to stand by", func() bool { return strings.Contains(instances["b"].output(), "stands by") })
	owner, other := "a", "b"
	for phase := range 3 {
		send(phase)
		await(t, 30*time.Second, "half of the messages", func() bool {
			sum, _ := offsets(t, c, group, topic)
			return sum >= int64(phase*part+part/2)
		})
		if owns(other) {
			t.Errorf("%s reads too", other)
		}
		instances[owner].kill()
		killed := time.Now()
		await(t, 30*time.Second, "the other instance to take over", func() bool { return owns(other) })
		if took := time.Since(killed); took > 10*time.Second {
			t.Errorf("taken over after %s", took)
		}
		begin(owner)
		owner, other = other, owner
	}
	await(t, 30*time.Second, "all messages", func() bool { sum, _ := offsets(t, c, group, topic); return sum == 3*part })
	instances[owner].kill()
	instances[other].kill()
	once(t, filepath.Join(dir, "a"), yaml)

	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT DATE_FORMAT(window_start, '%H:%i:%s'), k, n, s FROM windows")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	got := map[string]result{}
	for rows.Next() {
		var at, k string
		var r result
		if err := rows.Scan(&at, &k, &r.n, &r.s); err != nil {
			t.Fatal(err)
		}
		if _, twice := got[at+" "+k]; twice {
			t.Errorf("%s %s comes twice", at, k)
		}
		got[at+" "+k] = r
	}
	wrong := 0
	for id, w := range want {
		if got[id] != w {
			if wrong++; wrong < 4 {
				t.Errorf("%s: %v, want %v", id, got[id], w)
			}
		}
	}
	if wrong > 0 || len(got) != len(want) {
		t.Errorf("%d of %d wrong, %d there", wrong, len(want), len(got))
	}
}

// TestWindowsAlone: with its state in the state directory a second instance is refused, and says why.
func TestWindowsAlone(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group, dir, dsn := c.Topic(t, 4), services.Unique("g"), t.TempDir(), services.MySQL(t)
	yaml := windowed(c, group, topic, dsn, "")
	a := start(t, filepath.Join(dir, "a"), yaml)
	await(t, 20*time.Second, "the first instance to have all queues", func() bool { return strings.Count(a.output(), "queue taken") == 8 })
	b := start(t, filepath.Join(dir, "b"), yaml)
	select {
	case <-b.done:
	case <-time.After(time.Minute):
		t.Fatalf("the second instance goes on:\n%s", b.output())
	}
	if !strings.Contains(b.output(), "has 1 other member") {
		t.Errorf("it says\n%s", b.output())
	}
	a.stop(t)
}
