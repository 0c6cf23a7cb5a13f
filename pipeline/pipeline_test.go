package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/expr"
	_ "github.com/rsetl/rsetl/internal/components"
	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/pebble"
	"github.com/rsetl/rsetl/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collect is a sink that keeps its rows in memory, for tests of the runner. It can be told to fail.
type collect struct {
	enc  *record.Encoder
	name string
}

var (
	collected sync.Map // name -> *rows
)

type rows struct {
	mu     sync.Mutex
	list   []string
	took   int  // deliveries
	accept bool // what is to be rejected else
	fail   error
	gate   chan struct{} // where not nil, Deliver waits for it
}

func rowsOf(name string) *rows {
	r, _ := collected.LoadOrStore(name, &rows{})
	return r.(*rows)
}

func (r *rows) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

type collectConfig struct {
	Into string `yaml:"into,required"`
}

func (*collectConfig) Declare(d *steps.Decl) { d.ReadAll = true }
func (c *collectConfig) Build(b *steps.Build) (sinks.Sink, error) {
	return &collect{enc: record.NewEncoder(b.Table, b.Ship, b.OpenEnded), name: c.Into}, nil
}
func (s *collect) Encode(dst []byte, b *record.Batch, i int) ([]byte, error) {
	return s.enc.Append(dst, b, i), nil
}
func (s *collect) Deliver(ctx context.Context, c *sinks.Chunk) ([]sinks.Reject, error) {
	r := rowsOf(s.name)
	r.mu.Lock()
	gate := r.gate
	r.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return nil, r.fail
	}
	r.took++
	var rejects []sinks.Reject
	for pi := range c.Parts {
		for i := range c.Parts[pi].Ends {
			row := string(c.Parts[pi].Row(i))
			if strings.Contains(row, "reject me") && !r.accept {
				rejects = append(rejects, sinks.Reject{Part: pi, Row: i, Reason: "asked for"})
				continue
			}
			r.list = append(r.list, row)
		}
	}
	return rejects, nil
}

// sum is a stage for tests of the outbox: it takes every record in, and at each marker fires the sum of `n`
// by `k` of what came since, where there is any. Its state is a count of all it took.
type sumConfig struct{}

func (*sumConfig) UnmarshalConfig(*config.Context, *yamlNode) {}
func (*sumConfig) Declare(d *steps.Decl) {
	d.Read("k", nil)
	d.Read("n", nil)
	d.KeepOnly = []string{"k"}
	d.Write("total", expr.Type{})
}
func (*sumConfig) Build(b *steps.Build) (steps.Maker, error) {
	k, n, total := b.Slot("k"), b.Slot("n"), b.Slot("total")
	return func() steps.Step { return &sum{k: k, n: n, total: total, sums: map[string]int64{}} }, nil
}

type sum struct {
	k, n, total int
	sums        map[string]int64
	count       int
}

func (s *sum) Apply(b *record.Batch) {
	for _, i := range b.Sel {
		s.sums[string(b.Bytes(b.Get(int(i), s.k)))] += b.Get(int(i), s.n).Int()
		s.count++
	}
	b.Absorbed += len(b.Sel)
	b.Sel = b.Sel[:0]
}
func (s *sum) Restore(_ context.Context, load state.Keyed) error {
	return load.Range(nil, nil, func(k, v []byte) error {
		_, err := fmt.Sscan(string(v), &s.count)
		return err
	})
}
func (s *sum) Checkpoint(out *record.Batch) []state.KV {
	if len(s.sums) == 0 {
		return nil
	}
	keys := make([]string, 0, len(s.sums))
	for k := range s.sums {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		i := out.Add(record.Position{}, record.Value{})
		out.Set(i, s.k, out.PutString(k))
		out.Set(i, s.total, record.MakeInt(s.sums[k]))
	}
	clear(s.sums)
	return []state.KV{{Stage: "sum", Key: []byte("count"), Value: fmt.Append(nil, s.count)}}
}
func (s *sum) Due() bool { return false }

func init() {
	sinks.MustRegister("collect", sinks.Spec{New: func() sinks.Config { return &collectConfig{} }})
	steps.MustRegister("sum", steps.Spec{New: func() steps.Config { return &sumConfig{} }, Stateful: true})
}

type env struct {
	t     testing.TB
	dir   string
	store *pebble.Store
}

func newEnv(t testing.TB) *env {
	e := &env{t: t, dir: t.TempDir()}
	e.open()
	t.Cleanup(func() {
		if e.store != nil {
			e.store.Close()
		}
	})
	return e
}

func (e *env) open() {
	s, err := pebble.Open(filepath.Join(e.dir, "state"), pebble.Options{})
	if err != nil {
		e.t.Fatal(err)
	}
	e.store = s
}

func (e *env) write(name, text string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o644); err != nil {
		e.t.Fatal(err)
	}
}

// runner makes a runner of a pipeline; DIR in the text is the test's folder.
func (e *env) runner(yaml string, once bool) *pipeline.Runner {
	e.t.Helper()
	f, err := pipeline.Load("p.yaml", []byte(strings.ReplaceAll(yaml, "DIR", e.dir)), pipeline.LoadOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	p, err := pipeline.Compile(f, pipeline.CompileOptions{Once: once})
	if err != nil {
		e.t.Fatal(err)
	}
	r, err := pipeline.NewRunner(context.Background(), p, pipeline.RunOptions{Store: e.store, Letters: filepath.Join(e.dir, "dead.ndjson")})
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

func (e *env) once(yaml string) pipeline.Report {
	e.t.Helper()
	r := e.runner(yaml, true)
	if err := r.Run(context.Background()); err != nil {
		e.t.Fatal(err)
	}
	rep := r.Report()
	if rep.In+rep.Made != rep.Out+rep.Filtered+rep.Absorbed+rep.Dead+rep.InFlight || rep.InFlight != 0 {
		e.t.Errorf("ledger does not add up: %+v", rep)
	}
	for _, s := range rep.Sinks {
		if s.Received != s.Delivered+s.Rejected+s.Skipped+s.Held || s.Held != 0 {
			e.t.Errorf("sink ledger does not add up: %+v", s)
		}
	}
	return rep
}

func (e *env) letters() (out []map[string]any) {
	b, err := os.ReadFile(filepath.Join(e.dir, "dead.ndjson"))
	if err != nil {
		return nil
	}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			e.t.Fatal(err, line)
		}
		out = append(out, m)
	}
	return out
}

// eventually polls until ok, with a deadline.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func lines(n int, f func(i int) string) string {
	var s strings.Builder
	for i := range n {
		s.WriteString(f(i) + "\n")
	}
	return s.String()
}

func TestFatesOfRecords(t *testing.T) {
	e := newEnv(t)
	name := t.Name()
	e.write("in", "{\"k\": \"a\", \"n\": 1}\n{\"k\": \"b\", \"n\": \"x\"}\nno json\n{\"k\": \"c\", \"n\": 3}\n{\"k\": \"reject me\", \"n\": 4}\n")
	rep := e.once(`
source: {file: {paths: [DIR/in]}, codec: json}
steps:
  - date: {field: n, formats: [UNIX]}
    on_error: keep
    name: when
  - drop: k = 'c'
sinks:
  - collect: {into: ` + name + `}
  - collect: {into: ` + name + `-raw}
    name: raw
    from: source
  - collect: {into: ` + name + `-err}
    name: errs
    when: error.step IS NOT NULL
`)
	if rep.In != 5 || rep.Out != 3 || rep.Filtered != 1 || rep.Dead != 1 {
		t.Errorf("%+v", rep)
	}
	want := []string{
		`{"n":1,"@timestamp":"1970-01-01T00:00:01Z","k":"a"}`,
		`{"n":"x","error":{"message":"date: the text has none of the formats UNIX: \"x\"","step":"when"},"k":"b"}`,
	}
	if got := rowsOf(name).all(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := rowsOf(name + "-err").all(); !slices.Equal(got, want[1:]) {
		t.Errorf("got %q", got)
	}
	if got := rowsOf(name + "-raw").all(); len(got) != 4 || got[2] != `{"message":"no json"}` {
		t.Errorf("got %q", got)
	}
	letters := e.letters()
	var who []string
	for _, l := range letters {
		who = append(who, fmt.Sprint(l["step"], l["sink"], " ", l["offset"]))
	}
	slices.Sort(who)
	if want := []string{"<nil>collect 67", "<nil>raw 67", "source.codec<nil> 40"}; !slices.Equal(who, want) {
		t.Errorf("letters %q", who)
	}
	if rep.Sinks[0].Rejected != 1 || rep.Sinks[0].Delivered != 2 || rep.Sinks[1].Received != 5 || rep.Sinks[2].Received != 1 {
		t.Errorf("%+v", rep.Sinks)
	}
}

// TestNoSinkTakes: a record that no sink's `when` takes is filtered, not out.
func TestNoSinkTakes(t *testing.T) {
	e := newEnv(t)
	e.write("in", "a\nb\nc\n")
	rep := e.once(`
source: {file: {paths: [DIR/in]}}
sinks:
  - collect: {into: ` + t.Name() + `}
    when: message = 'a'
  - collect: {into: ` + t.Name() + `}
    when: message <> 'c'
`)
	if rep.Out != 2 || rep.Filtered != 1 {
		t.Errorf("%+v", rep)
	}
}

// TestOrderWithWorkers: batches of a split come out in order, however many lanes there are.
func TestOrderWithWorkers(t *testing.T) {
	e := newEnv(t)
	const n = 200_000
	e.write("in", lines(n, func(i int) string { return fmt.Sprint(i) }))
	rep := e.once(`
source: {file: {paths: [DIR/in]}}
workers: 4
memory: 1MiB
steps:
  - filter: CAST(message AS BIGINT) % 3 = 0
sinks:
  - collect: {into: ` + t.Name() + `}
`)
	got := rowsOf(t.Name()).all()
	if len(got) != (n+2)/3 || rep.In != n || rep.Out != (n+2)/3 {
		t.Fatalf("%d rows, %+v", len(got), rep)
	}
	for i, row := range got {
		if want := fmt.Sprintf(`{"message":"%d"}`, 3*i); row != want {
			t.Fatalf("row %d is %s, not %s", i, row, want)
		}
	}
}

const sumPipeline = `
source: {file: {paths: [DIR/in], start: beginning, poll: 5ms}, codec: json}
checkpoint: {interval: 20ms}
steps:
  - sum: {}
  - set: {text: k || '!'}
  - drop: total < 0
sinks:
  - collect: {into: NAME}
  - collect: {into: NAME-raw}
    name: raw
    from: source.codec
`

// TestOutbox: a stage's firings are committed, run through the steps behind it once, and are delivered; the ledgers add up.
func TestOutbox(t *testing.T) {
	e := newEnv(t)
	e.write("in", `{"k": "a", "n": 1}`+"\n"+`{"k": "b", "n": -5}`+"\n"+`{"k": "a", "n": 2}`+"\n")
	yaml := strings.ReplaceAll(sumPipeline, "NAME", t.Name())
	rep := e.once(yaml)
	if got, want := rowsOf(t.Name()).all(), []string{`{"k":"a","total":3,"text":"a!"}`}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if rep.In != 3 || rep.Absorbed != 3 || rep.Made != 2 || rep.Out != 1 || rep.Filtered != 1 {
		t.Errorf("%+v", rep)
	}
	if got := rowsOf(t.Name() + "-raw").all(); len(got) != 3 {
		t.Errorf("raw: %q", got)
	}
	// What was acknowledged has left; numbers go on.
	left, err := e.store.Outbox(context.Background(), "default/p", "collect", 0, 10)
	if err != nil || len(left) != 0 {
		t.Errorf("left %v %v", left, err)
	}
	snap, err := e.store.Load(context.Background(), "default/p")
	if err != nil || snap.NextSeq["collect"] != 2 {
		t.Errorf("next %v %v", snap.NextSeq, err)
	}
}

// TestOutboxAfterFailure: firings that were committed and not delivered are delivered by the next run, the same bytes, although the
// records behind them are not read again.
func TestOutboxAfterFailure(t *testing.T) {
	e := newEnv(t)
	yaml := strings.ReplaceAll(sumPipeline, "NAME", t.Name())
	r := rowsOf(t.Name())
	r.fail = errors.New("down")
	e.write("in", `{"k": "a", "n": 1}`+"\n")
	run := e.runner(yaml, false)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- run.Run(ctx) }()
	eventually(t, "a firing is in the store", func() bool {
		fs, err := e.store.Outbox(context.Background(), "default/p", "collect", 0, 10)
		return err == nil && len(fs) == 1
	})
	run.Fail(errors.New("killed"))
	if err := <-done; err == nil {
		t.Fatal("the run that was given up said nothing")
	}
	r.mu.Lock()
	r.fail = nil
	r.mu.Unlock()
	rep := e.once(yaml)
	if got, want := r.all(), []string{`{"k":"a","total":1,"text":"a!"}`}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if rep.In != 1 || rep.Made != 1 || rep.Out != 1 || rep.Absorbed != 1 {
		t.Errorf("%+v", rep)
	}
}

// TestStopWithDeadSink: a stop ends within `drain` where a sink is down, says what it could not do, and the rows come with the next run.
func TestStopWithDeadSink(t *testing.T) {
	e := newEnv(t)
	r := rowsOf(t.Name())
	r.fail = errors.New("down for good")
	e.write("in", "a\nb\n")
	yaml := "source: {file: {paths: [DIR/in], start: beginning}}\ndrain: 50ms\nsinks:\n  - collect: {into: " + t.Name() + "}\n    batch: {interval: 1ms}\n"
	run := e.runner(yaml, false)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run.Run(ctx) }()
	eventually(t, "the sink is blocked", func() bool { return run.Troubles()["sink collect"] != "" })
	cancel()
	err := <-done
	if !errors.Is(err, pipeline.ErrDrain) || !strings.Contains(err.Error(), "sink collect holds 2 rows") || !strings.Contains(err.Error(), "down for good") {
		t.Errorf("got %v", err)
	}
	r.mu.Lock()
	r.fail = nil
	r.mu.Unlock()
	rep := e.once(yaml)
	if got := r.all(); len(got) != 2 || rep.In != 2 {
		t.Errorf("%q %+v", got, rep)
	}
}

// TestBackpressure: a sink that does not move stops the source within the budget, and everything comes through when it moves again.
func TestBackpressure(t *testing.T) {
	e := newEnv(t)
	r := rowsOf(t.Name())
	gate := make(chan struct{})
	r.gate = gate
	const n = 100_000
	e.write("in", lines(n, func(i int) string { return strings.Repeat("x", 100) }))
	run := e.runner("source: {file: {paths: [DIR/in]}}\nmemory: 1MiB\nsinks:\n  - collect: {into: "+t.Name()+"}\n    batch: {memory: 100KiB}\n", true)
	done := make(chan error, 1)
	go func() { done <- run.Run(context.Background()) }()
	last := int64(-1)
	eventually(t, "the source stands still", func() bool {
		in := run.Report().In
		still := in == last && in > 0
		last = in
		time.Sleep(20 * time.Millisecond)
		return still
	})
	if last > n/4 {
		t.Errorf("%d of %d records were read behind a sink that takes none", last, n)
	}
	close(gate)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := len(r.all()); got != n {
		t.Errorf("%d rows", got)
	}
}

// TestSecondFresh: what acts at the first start only does not act at a later one.
func TestOverwriteOnlyAtFirst(t *testing.T) {
	e := newEnv(t)
	e.write("in", "a\n")
	e.write("out.json", "old\n")
	yaml := "source: {file: {paths: [DIR/in], start: beginning}}\nsinks: [file: {path: DIR/out.json, mode: overwrite}]\n"
	e.once(yaml)
	e.write("in2", "")
	f, err := os.OpenFile(filepath.Join(e.dir, "in"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("b\n")
	f.Close()
	e.once(yaml)
	got, err := os.ReadFile(filepath.Join(e.dir, "out.json"))
	if want := "{\"message\":\"a\"}\n{\"message\":\"b\"}\n"; err != nil || string(got) != want {
		t.Errorf("%q %v", got, err)
	}
}

type bombConfig struct{}

func (*bombConfig) UnmarshalConfig(*config.Context, *yamlNode) {}
func (*bombConfig) Declare(d *steps.Decl)                      { d.Read("message", nil) }
func (*bombConfig) Build(b *steps.Build) (steps.Maker, error) {
	return func() steps.Step { return bomb{b.Slot("message")} }, nil
}

type bomb struct{ slot int }

func (s bomb) Apply(b *record.Batch) {
	for _, i := range b.Sel {
		if string(b.Bytes(b.Get(int(i), s.slot))) == "bomb" {
			panic("boom")
		}
	}
}

func init() {
	steps.MustRegister("bomb", steps.Spec{New: func() steps.Config { return &bombConfig{} }})
}

// TestPanic: a fault in a step fails its pipeline with a message; nothing of the batch is committed.
func TestPanic(t *testing.T) {
	e := newEnv(t)
	e.write("in", "a\nbomb\n")
	r := e.runner("source: {file: {paths: [DIR/in]}}\nsteps: [bomb: {}]\nsinks: [collect: {into: "+t.Name()+"}]\n", true)
	err := r.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "internal error in a step: boom") {
		t.Fatalf("got %v", err)
	}
	snap, err := e.store.Load(context.Background(), "default/p")
	if err != nil || len(snap.Splits) != 1 || snap.Splits[0].Position().Offset != 0 {
		t.Errorf("%+v %v", snap, err)
	}
}

// TestManySmallFiles: what a thousand small files hold goes out in few deliveries, not in one a file.
func TestManySmallFiles(t *testing.T) {
	e := newEnv(t)
	for i := range 1000 {
		e.write(fmt.Sprintf("%04d.log", i), fmt.Sprintf("%d a\n%d b\n%d c\n", i, i, i))
	}
	e.once("source: {file: {paths: ['DIR/*.log']}}\nsinks: [collect: {into: many}]\n")
	r := rowsOf("many")
	if len(r.list) != 3000 {
		t.Errorf("%d rows", len(r.list))
	}
	t.Logf("%d deliveries", r.took)
	if r.took > 30 { // a thousand rows each, and what the interval flushes on a slow machine
		t.Errorf("%d deliveries", r.took)
	}
	e.once("source: {file: {paths: ['DIR/*.log']}}\nsinks: [collect: {into: many}]\n")
	if len(r.list) != 3000 {
		t.Errorf("read again: %d rows", len(r.list))
	}
}

// TestReplay: letters of steps and sinks go through once more, once, and the ledger adds up.
func TestReplay(t *testing.T) {
	e := newEnv(t)
	e.write("in.log", "{\"a\":1}\nnot json\n{\"a\":\"reject me\",\"t\":\"2024-02-24T23:13:42.5Z\",\"o\":{\"x\":[1,2.50]}}\n")
	const yaml = `
source: {file: {paths: ['DIR/in.log']}}
steps:
  - json: {replace: true}
    name: parse
sinks:
  - collect: {into: replay}
  - collect: {into: raw}
    name: raw
    from: source
`
	r := rowsOf("replay")
	rowsOf("raw").accept = true
	rep := e.once(yaml)
	if rep.Dead != 1 || rep.Sinks[0].Rejected != 1 || len(r.list) != 1 {
		t.Fatalf("%+v %q", rep, r.list)
	}
	replay := func(f *deadletter.Filter) *pipeline.Replay {
		t.Helper()
		f2, err := pipeline.Load("p.yaml", []byte(strings.ReplaceAll(yaml, "DIR", e.dir)), pipeline.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := pipeline.Compile(f2, pipeline.CompileOptions{Once: true})
		if err != nil {
			t.Fatal(err)
		}
		out, err := pipeline.ReplayLetters(context.Background(), e.store, p, filepath.Join(e.dir, "dead.ndjson"), f)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := replay(&deadletter.Filter{Step: "other"}); out.Replayed != 0 {
		t.Errorf("%+v", out)
	}
	r.accept = true
	if out := replay(&deadletter.Filter{Sink: "collect"}); out.Replayed != 1 {
		t.Errorf("%+v", out)
	}
	rep = e.once(yaml)
	if want := []string{`{"a":1}`, `{"a":"reject me","o":{"x":[1,2.5]},"t":"2024-02-24T23:13:42.5Z"}`}; !slices.Equal(r.list, want) {
		t.Errorf("%q, want %q", r.list, want)
	}
	if s := rep.Sinks[0]; rep.In != 3 || rep.Made != 0 || rep.Out != 2 || s.Received != 3 || s.Delivered != 2 || s.Rejected != 1 {
		t.Errorf("%+v", rep)
	}
	if out := replay(&deadletter.Filter{}); out.Replayed != 1 || out.Before != 1 {
		t.Errorf("%+v", out)
	}
	rep = e.once(yaml) // it fails again: a new letter, and the raw sink has had it
	if rep.Made != 1 || rep.Dead != 2 || len(e.letters()) != 3 || len(rowsOf("raw").list) != 3 {
		t.Errorf("%+v %d letters, raw %q", rep, len(e.letters()), rowsOf("raw").list)
	}
	if again := e.letters()[2]; again["raw"] != "not json" || again["step"] != "parse" {
		t.Errorf("%v", again)
	}
}
