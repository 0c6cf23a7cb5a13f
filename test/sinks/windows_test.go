package sinks

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/test/binary"
	"github.com/rsetl/rsetl/test/services"
)

const windowsPipeline = `
source:
  file: {paths: ['%[1]s/*.log'], start: beginning}
  codec: json
memory: 1MiB
steps:
  - window:
      tumble: 2s
      time: ts
      delay: 1s
      by: [k]
      select: {n: COUNT(*), s: SUM(v)}
      emit: %[2]s
sinks:
  - elasticsearch: {hosts: ['%[3]s'], index: %[4]s}
    batch: {size: 61, interval: 30ms}
  - mysql: {dsn: '%[5]s', table: windows, create_table: true, %[6]s}
    batch: {size: 67, interval: 30ms}
checkpoint: {interval: 50ms}
drain: 20s
%[7]s
`

// result is a window's result as a sink has it.
type result struct{ n, s, firing int64 }

// TestWindows kills the program while windows fire into real servers: what is there in the end is what a run has that nothing
// disturbed, for every kind of emission.
func TestWindows(t *testing.T) {
	es, bin := services.Elasticsearch(t), binary.Path(t)
	for _, emit := range []string{"final", "delta", "update"} {
		t.Run(emit, func(t *testing.T) { windows(t, es, bin, emit, false) })
	}
}

// TestRemoteWindows is the same with the state in a database and two instances, of which one stands by.
func TestRemoteWindows(t *testing.T) {
	es, bin := services.Elasticsearch(t), binary.Path(t)
	for _, emit := range []string{"final", "delta", "update"} {
		t.Run(emit, func(t *testing.T) { windows(t, es, bin, emit, true) })
	}
}

func windows(t *testing.T, es, bin, emit string, remote bool) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	dsn, index, dir := services.MySQL(t), services.Unique("windows"), t.TempDir()
	request(t, "PUT", es+"/"+index, `{"settings": {"number_of_replicas": 0, "refresh_interval": "5s"}}`)
	t.Cleanup(func() { request(t, "DELETE", es+"/"+index, "") })
	mode := "mode: insert"
	if emit == "update" {
		mode = "mode: upsert, key: [window_start, k]"
	}
	state := ""
	if remote {
		state = "state: {remote: {dsn: '" + dsn + "', lease: 1s}}"
	}
	conf := filepath.Join(dir, "win.yaml")
	if err := os.WriteFile(conf, fmt.Appendf(nil, windowsPipeline, dir, emit, es, index, dsn, mode, state), 0o644); err != nil {
		t.Fatal(err)
	}
	want := map[string]result{}
	base := time.Date(2024, 1, 1, 10, 0, 0, 0, time.UTC).UnixMilli()
	var files [2]*os.File
	var now [2]int64
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i, ".log")))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	write := func(lines int) {
		var text [2]strings.Builder
		for range lines {
			i := r.IntN(2)
			now[i] += int64(r.IntN(60))
			ms := max(base+now[i]-int64(r.IntN(2)*r.IntN(900)), base)
			k, v := string(rune('a'+r.IntN(4))), int64(r.IntN(100))
			fmt.Fprintf(&text[i], `{"ts":"%s","k":"%s","v":%d}`+"\n", time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"), k, v)
			id := fmt.Sprint(ms/2000*2, " ", k)
			g := want[id]
			want[id] = result{g.n + 1, g.s + v, 0}
		}
		for i := range files {
			if _, err := files[i].WriteString(text[i].String()); err != nil {
				t.Fatal(err)
			}
		}
	}
	// An empty file is no split yet: what came into it after the other was read would be late.
	for i := range files {
		fmt.Fprintf(files[i], `{"ts":"%s","k":"a","v":1}`+"\n", time.UnixMilli(base).UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	want[fmt.Sprint(base/1000, " a")] = result{2, 2, 0}
	run := func(instance int, args ...string) (*exec.Cmd, *strings.Builder) {
		var out strings.Builder
		own := filepath.Join(dir, fmt.Sprint("instance", instance))
		if err := os.MkdirAll(own, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(bin, append([]string{"run", "--state-dir", filepath.Join(own, "state")}, append(args, conf)...)...)
		cmd.Dir, cmd.Stderr = own, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, &out
	}
	instances := 1
	if remote {
		instances = 2
	}
	cmds, outs := make([]*exec.Cmd, instances), make([]*strings.Builder, instances)
	kill := func(i int) {
		cmds[i].Process.Kill()
		cmds[i].Wait()
		if cmds[i].ProcessState.Exited() {
			t.Fatalf("it ended by itself\n%s", outs[i])
		}
		cmds[i] = nil
	}
	for range 8 {
		for i := range cmds {
			if cmds[i] == nil {
				cmds[i], outs[i] = run(i)
			}
		}
		for range 1 + r.IntN(6) {
			write(r.IntN(3000))
			time.Sleep(time.Duration(r.IntN(120)) * time.Millisecond)
		}
		if remote { // the lease of who was killed before must end
			time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		}
		kill(r.IntN(instances))
	}
	for i := range cmds {
		if cmds[i] != nil {
			kill(i)
		}
	}
	cmd, out := run(r.IntN(instances), "--once")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for sink, got := range map[string]map[string][]result{"elasticsearch": windowDocs(t, es, index), "mysql": windowRows(t, dsn, emit)} {
		wrong := 0
		for id, w := range want {
			var g result
			for i, x := range got[id] {
				switch {
				case emit == "delta":
					g = result{g.n + x.n, g.s + x.s, 0}
				case emit == "update" && x.firing > g.firing:
					g = x
				case emit == "final" && i == 0:
					g = x
				case emit == "final":
					t.Errorf("%s: %s comes twice", sink, id)
				}
			}
			if g.firing = 0; g != w {
				if wrong++; wrong < 4 {
					t.Errorf("%s: %s: %v, want %v", sink, id, got[id], w)
				}
			}
		}
		t.Logf("%s: %d windows and keys, %d wrong", sink, len(want), wrong)
		if len(got) != len(want) {
			t.Errorf("%s: %d windows and keys, want %d", sink, len(got), len(want))
		}
	}
}

func windowRows(t *testing.T, dsn, emit string) map[string][]result {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	firing := "window_firing"
	if emit == "final" {
		firing = "0"
	}
	rows, err := db.Query("SELECT CAST(TIMESTAMPDIFF(SECOND, '1970-01-01', window_start) AS SIGNED), k, n, s, " + firing + " FROM windows")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[string][]result{}
	for rows.Next() {
		var at int64
		var k string
		var x result
		if err := rows.Scan(&at, &k, &x.n, &x.s, &x.firing); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint(at, " ", k)
		out[id] = append(out[id], x)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func windowDocs(t *testing.T, es, index string) map[string][]result {
	request(t, "POST", es+"/"+index+"/_refresh", "")
	out := map[string][]result{}
	for k := range 4 { // a request gives 10,000 at most
		var res struct {
			Hits struct {
				Hits []struct {
					Source struct {
						Start  time.Time `json:"window_start"`
						K      string
						N, S   int64
						Firing int64 `json:"window_firing"`
					} `json:"_source"`
				}
			}
		}
		p := request(t, "POST", es+"/"+index+"/_search", fmt.Sprintf(`{"size": 10000, "query": {"match": {"k": "%c"}}}`, 'a'+k))
		if err := json.Unmarshal(p, &res); err != nil {
			t.Fatal(err, string(p))
		}
		for _, h := range res.Hits.Hits {
			id := fmt.Sprint(h.Source.Start.Unix(), " ", h.Source.K)
			out[id] = append(out[id], result{h.Source.N, h.Source.S, h.Source.Firing})
		}
	}
	return out
}
