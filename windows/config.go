// Package windows is the step `window`: records are grouped by time and keys, and their aggregates come out when event time
// has passed. Everything in it runs at the ordered end, in one goroutine; clocks come with the calls.
package windows

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("window", steps.Spec{
		Doc: config.Doc{
			Summary: "Groups records by time and keys and gives their aggregates.",
			Details: "Windows are of one kind: `tumble`, `hop`, `cumulate` or `session`. A result has the keys, what `select` names, and `window_start` and `window_end`; `%{+…}` behind it is window_start. " +
				"A split's event time is the largest that it has brought; the smallest of all splits, less `delay`, is the watermark; records that a filter before the window has dropped count too, where they have the time field by then. A window is closed when the watermark is at its end less 1 ms; what comes for it afterwards is late. " +
				"A finite source's windows all fire at its end; stopping fires none.\n\n" +
				"`emit: final` gives one result for each window and key, when the window closes. `delta` and `update` give the first one when event time, without the delay, passes the end, and then more as late records come within the delay: " +
				"`delta` what is new since the one before, so that they add up; `update` the whole again. Their results are numbered from 1 in `window_firing`; with `update` a sink that upserts by window and keys has the latest.\n\n" +
				"With `zone`, windows of whole days begin and end at local midnights, so that some have 23 or 25 hours. A split that its source has nothing to read from for `idle` doesn't hold the others back; where all splits are idle, " +
				"time goes on as the clock does, `idle` behind, so that the last windows fire too.\n\n" +
				"State is kept in memory and, with each checkpoint, where the pipeline's `state` says: in the state directory it survives any end of the process, in a database the loss of the host too. What is over `memory`, and after a start everything, is there only until it is needed. When a definition is changed by reload, the windows that are open fire as they are and new ones begin; where it was changed while nothing ran, the start is refused and says what can be done.",
			Example: "- window:\n    tumble: 1m\n    time: '@timestamp'\n    delay: 5s\n    by: [host, status]\n    select: {hits: COUNT(*), bytes: SUM(bytes)}",
		},
		New:      func() steps.Config { return &Config{} },
		CanFail:  true,
		Stateful: true,
	})
}

// Hop are windows that begin every so often.
type Hop struct {
	Size  config.Duration `yaml:"size,required" doc:"How long a window is."`
	Every config.Duration `yaml:"every,required" doc:"How far apart they begin (cumulate: end); size is a multiple of it."`
}

// maxOverlap bounds the windows that one record is in, and so the results that one record makes.
const maxOverlap = 100_000

// Config is `window: {…}`.
type Config struct {
	Tumble   config.Duration   `yaml:"tumble" doc:"Windows of this length, one after the other."`
	Hop      *Hop              `yaml:"hop" doc:"Windows that overlap. Records are counted once, in slices that the windows share, so that it costs what a tumble of every does."`
	Cumulate *Hop              `yaml:"cumulate" doc:"Windows that begin together, every size, and of which each ends every later."`
	Session  config.Duration   `yaml:"session" doc:"Windows of records of one key that are at most this far apart."`
	Time     steps.FieldPath   `yaml:"time,required" doc:"The field with the event time, or processing: the time at which a record arrives here."`
	Offset   Offset            `yaml:"offset" doc:"Windows begin this much after whole multiples of their length since 1970; it may be negative."`
	Zone     string            `yaml:"zone" doc:"A time zone such as Europe/Berlin whose midnights are where windows of whole days begin."`
	Delay    config.Duration   `yaml:"delay" doc:"How far a record's time may be behind the largest that its split has brought." default:"0s"`
	Ahead    config.Duration   `yaml:"ahead" doc:"Records whose time is more than this ahead of the clock fail: one wrong clock would close all windows. 0s lets them in." default:"0s"`
	Idle     config.Duration   `yaml:"idle" doc:"A split without anything to read for so long doesn't hold back the others." default:"30s"`
	By       []steps.FieldPath `yaml:"by" doc:"The keys: fields whose values make the groups. NULL is a value too."`
	Select   config.Map[Expr]  `yaml:"select" doc:"The results' fields: expressions over aggregates, keys and the window's bounds."`
	Having   Expr              `yaml:"having" doc:"Results for which it isn't TRUE are left out; over aggregates, keys and the window's bounds. With update a result that was given isn't taken back. Not with delta."`
	Emit     string            `yaml:"emit" doc:"Which results come out, see above. Sessions, whose bounds are known at their end only, are final." enum:"final,delta,update" default:"final"`
	Early    config.Duration   `yaml:"early" doc:"With update: results of windows that are still open, so often by the clock."`
	Late     string            `yaml:"late" doc:"What becomes of records for closed windows: they fail, which on_error settles, or count as filtered." enum:"dead_letter,drop" default:"dead_letter"`
	MaxKeys  int               `yaml:"max_keys" doc:"The most groups that are open at once, counted in each window or slice; records for more fail. Where a window's groups are partly in the store only, up to an eighth more may come to it." default:"4000000" min:"1"`
	Memory   config.Size       `yaml:"memory" doc:"The memory for groups, about. What is over it is kept in the store only until it is needed: the windows that had no records for longest go first. Sessions are kept in memory whatever it is, and so is a window that is put together of slices while it fires." default:"256MiB" min:"1"`
	State    string            `yaml:"state" doc:"A pipeline's state is all in one place, which its own state says; so this may say the same, and nothing else: local or remote." enum:"local,remote"`

	node *yaml.Node
}

// Offset is a duration that may be negative.
type Offset time.Duration

// UnmarshalConfig reads it.
func (o *Offset) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	s, ok := c.Scalar(n, "a duration like 10s")
	if !ok || !c.Known() {
		return
	}
	d, err := config.ParseDuration(s)
	if err != nil {
		c.Errorf(n, "%v", err)
	}
	*o = Offset(d)
}

// JSONSchema is a duration's.
func (Offset) JSONSchema() map[string]any { return config.Schema(config.Duration(0)) }

// Expr is an expression over aggregates in a YAML file.
type Expr struct {
	*expr.Expr
	Node *yaml.Node
	path string
}

// UnmarshalConfig parses the expression.
func (e *Expr) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	e.Node, e.path = n, c.Path()
	src, ok := c.Scalar(n, "an expression")
	if !ok {
		return
	}
	if n.Tag == "!!null" {
		if n.Value == "" {
			c.Errorf(n, "an expression is missing; a comma within {…} ends the value: put it in quotes")
			return
		}
		src = "NULL"
	}
	x, err := expr.Parse(src)
	if err == nil {
		x, err = c.Functions.Expand(x)
	}
	if err == nil { // unknown functions and the like, whatever else is wrong with the file
		k := &expr.Compiler{Table: record.NewTable()}
		var over *expr.Expr
		if over, err = expr.NewAggregates(k).Take(x); err == nil {
			_, err = k.Compile(over)
		}
	}
	if err != nil {
		steps.Report(c.Errs, n, c.Path(), err)
		return
	}
	e.Expr = x
}

// JSONSchema is how it appears in the schema.
func (Expr) JSONSchema() map[string]any { return steps.Expr{}.JSONSchema() }

var _ steps.Config = (*Config)(nil)

// synonyms are the names that users of other systems try.
var synonyms = steps.Synonyms{"group_by": "by", "aggregates": "select", "timeout": "idle", "lateness": "delay", "allowed_lateness": "delay", "watermark": "delay", "size": "tumble: 1m` or `hop: {size: …, every: …}",
	"slide": "hop: {size: …, every: …}", "gap": "session", "tumbling": "tumble", "hopping": "hop", "sliding": "hop"}

// UnmarshalConfig checks what options say together.
func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	k.node = n
	if !synonyms.Decode(c, n, k) {
		return
	}
	kinds := 0
	for _, is := range []bool{k.Tumble != 0, k.Hop != nil, k.Cumulate != nil, k.Session != 0} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		c.Errorf(n, "want one of `tumble: LENGTH`, `hop: {size, every}`, `cumulate: {size, every}` and `session: GAP`")
		return
	}
	length := func(name string, d config.Duration) {
		if d <= 0 || d.D()%time.Millisecond != 0 {
			c.Errorf(n, "%s: want whole milliseconds, more than none", name)
		}
	}
	switch {
	case k.Tumble != 0:
		length("tumble", k.Tumble)
	case k.Session != 0:
		length("session", k.Session)
		switch {
		case k.Emit != "final":
			c.Errorf(n, "emit: a session's start and end are known when it ends; `emit: %s` needs tumble, hop or cumulate", k.Emit)
		case k.Zone != "" || k.Offset != 0:
			c.Errorf(n, "zone and offset don't apply to sessions")
		}
	default:
		h, name := k.Hop, "hop"
		if h == nil {
			h, name = k.Cumulate, "cumulate"
		}
		length(name+".size", h.Size)
		length(name+".every", h.Every)
		if h.Every > 0 && h.Size%h.Every != 0 {
			c.Errorf(n, "%s: size %s is no multiple of every %s", name, h.Size, h.Every)
		} else if h.Every > 0 && h.Size/h.Every > maxOverlap {
			c.Errorf(n, "%s: a record would be in %d windows, at most %d is possible; make every longer", name, h.Size/h.Every, maxOverlap)
		}
	}
	if k.Offset%Offset(time.Millisecond) != 0 {
		c.Errorf(n, "offset: want whole milliseconds")
	}
	for _, d := range []struct {
		name string
		v    config.Duration
	}{{"delay", k.Delay}, {"idle", k.Idle}, {"early", k.Early}, {"ahead", k.Ahead}} {
		if d.v < 0 {
			c.Errorf(n, "%s: it can't be negative", d.name)
		}
	}
	if k.Zone != "" {
		_, err := time.LoadLocation(k.Zone)
		day := config.Duration(24 * time.Hour)
		size, every := k.lengths()
		switch {
		case err != nil:
			c.Errorf(n, "zone: %q is no time zone; write a name such as Europe/Berlin", k.Zone)
		case size%day != 0 || every%day != 0:
			c.Errorf(n, "zone: it moves windows of whole days; for shorter ones there is offset")
		}
	}
	if k.Early != 0 && k.Emit != "update" {
		c.Errorf(n, "early: only `emit: update` gives results of windows that are open")
	}
	if k.Having.Expr != nil && k.Emit == "delta" {
		c.Errorf(n, "having: partial results can't be judged; it goes with `emit: final` and `update`")
	}
	if k.Time.Name == "processing" && (k.Delay != 0 || k.Ahead != 0) {
		c.Errorf(n, "delay and ahead: nothing is late, or early, in processing time")
	}
}

// JSONSchema is the struct's.
func (Config) JSONSchema() map[string]any {
	type plain Config
	return config.Schema(plain{})
}

// lengths are a window's length and the distance of two.
func (k *Config) lengths() (size, every config.Duration) {
	switch {
	case k.Hop != nil:
		return k.Hop.Size, k.Hop.Every
	case k.Cumulate != nil:
		return k.Cumulate.Size, k.Cumulate.Every
	}
	return k.Tumble, k.Tumble
}

func (k *Config) processing() bool { return k.Time.Name == "processing" }

// EventTime is the field that %{+…} means behind the step.
func (*Config) EventTime() string { return "window_start" }

// Firing is the field that numbers the results of one window and key.
const firingField = "window_firing"

// Declare tells what is read and what comes out.
func (k *Config) Declare(d *steps.Decl) {
	if !k.processing() {
		d.Read(k.Time.Name, k.Time.Node)
	}
	d.KeepOnly = []string{}
	keys := map[string]bool{}
	for _, f := range k.By {
		d.Read(f.Name, f.Node)
		d.KeepOnly = append(d.KeepOnly, f.Name)
		if keys[f.Name] {
			d.Errorf(f.Node, "by", "%s is there twice", f.Name)
		}
		keys[f.Name] = true
	}
	stamp, _ := expr.ParseType("TIMESTAMP(3)")
	d.Write("window_start", stamp)
	d.Write("window_end", stamp)
	big, _ := expr.ParseType("BIGINT")
	if k.Emit != "final" {
		d.Write(firingField, big)
	}
	bounds := map[string]bool{"window_start": true, "window_end": true, firingField: k.Emit != "final"}
	read := func(e *Expr, what string) {
		if e.Expr == nil {
			return
		}
		for _, f := range e.Fields() {
			if !bounds[f] {
				d.Read(f, e.Node)
			}
		}
		for _, f := range e.FieldsOutside() {
			if !keys[f.Name] && !bounds[f.Name] {
				steps.Report(d.Errs, e.Node, d.Path+"."+what, &expr.Error{Off: f.Off,
					Msg: f.Name + " is neither a key nor inside of an aggregate", Hint: "add it to `by`, or take LAST_VALUE(" + f.Name + ")"})
			}
		}
	}
	names := steps.Paths(&config.Context{Errs: d.Errs}, k.Select)
	for i := range k.Select {
		s := &k.Select[i]
		read(&s.Value, "select")
		switch name := names[i]; {
		case name == "window_start" || name == "window_end" || name == firingField:
			d.Errorf(s.Node, "select", "%s is there in every result", name)
		case keys[name]:
			d.Errorf(s.Node, "select", "%s is a key, which is in every result", name)
		default:
			t := expr.Type{}
			if s.Value.Expr != nil && s.Value.IsCount() {
				t = big
			}
			d.Write(name, t)
		}
	}
	read(&k.Having, "having")
}

// Explain says what holds of the windows.
func (k *Config) Explain() []string {
	var out []string
	switch size, every := k.lengths(); {
	case k.Session != 0:
		out = append(out, fmt.Sprintf("windows: sessions that end %s after their last record", k.Session))
	case k.Cumulate != nil:
		out = append(out, fmt.Sprintf("windows: up to %s, each ends %s after the one before", size, every))
	case k.Hop != nil && k.Emit == "final":
		out = append(out, fmt.Sprintf("windows: %s long, every %s; they share slices of %s, so that a record is counted once", size, every, every))
	case k.Hop != nil:
		out = append(out, fmt.Sprintf("windows: %s long, every %s; with emit %s a record is counted in each of its %d windows", size, every, k.Emit, size/every))
	default:
		out = append(out, fmt.Sprintf("windows: %s long", size))
	}
	if k.processing() {
		out = append(out, "time: the clock's when a record arrives; after a crash records that are read again are counted where they arrive then")
	} else {
		out = append(out, fmt.Sprintf("time: %s; the watermark is %s behind the slowest split that isn't idle for %s", k.Time.Name, k.Delay, k.Idle))
	}
	switch k.Emit {
	case "final":
		out = append(out, "results: one for each window and key; exactly once into sinks that are")
	case "delta":
		out = append(out, "results: parts that add up, numbered by "+firingField)
	default:
		out = append(out, "results: the whole again, numbered by "+firingField+"; an upsert by window and keys keeps the latest")
	}
	if k.Late == "drop" {
		out = append(out, "late records: counted as filtered")
	} else {
		out = append(out, "late records: on error")
	}
	return append(out, "state: in memory, changes to the store at each checkpoint")
}

// Build makes the stage.
func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	p := &plan{Config: k, now: b.Now, log: b.Log, name: b.Name, table: b.Table}
	if !k.processing() {
		p.timeSlot = b.Slot(k.Time.Name)
		e, err := expr.Parse("TRY_CAST(" + expr.QuotePath(k.Time.Name) + " AS TIMESTAMP(9))")
		if err == nil {
			p.timeOf, err = b.Compiler.Compile(e)
		}
		if err != nil {
			return nil, fmt.Errorf("time: %w", err)
		}
	}
	for _, f := range k.By {
		p.by = append(p.by, b.Slot(f.Name))
	}
	p.keys = b.Key(k.By)
	p.startSlot, p.endSlot, p.firingSlot = b.Slot("window_start"), b.Slot("window_end"), -1
	if k.Emit != "final" {
		p.firingSlot = b.Slot(firingField)
	}
	aggs := expr.NewAggregates(b.Compiler)
	after := *b.Compiler
	after.EventTime = "window_start"
	keys := map[string]bool{}
	for _, f := range k.By {
		keys[f.Name] = true
	}
	before := b.TypeOf
	after.TypeOf = func(f string) expr.Type {
		if t, ok := aggs.Type(f); ok {
			return t
		}
		if keys[f] && before != nil {
			return before(f)
		}
		return expr.Type{}
	}
	texts := map[string]string{}
	compile := func(e *Expr) *expr.Program {
		if e.Expr == nil {
			return nil
		}
		over, err := aggs.Take(e.Expr)
		var prog *expr.Program
		if err == nil {
			callTexts(texts, e.Source(), over)
			prog, err = after.Compile(over)
		}
		if err != nil {
			steps.Report(b.Errs, e.Node, e.path, err)
			return nil
		}
		return prog
	}
	for i := range k.Select {
		if prog := compile(&k.Select[i].Value); prog != nil {
			name, _ := expr.ParsePath(k.Select[i].Key)
			p.progs, p.slots, p.names = append(p.progs, prog), append(p.slots, b.Slot(name)), append(p.names, name)
		}
	}
	if p.having = compile(&k.Having); p.having != nil {
		if t := p.having.Type(); t.Kind != expr.TBoolean && t.Kind != expr.TAny {
			steps.Report(b.Errs, k.Having.Node, k.Having.path, &expr.Error{Msg: "a condition is TRUE or FALSE, this is a " + t.String()})
		}
	}
	p.calls = aggs.Calls()
	for _, c := range p.calls {
		p.aggSlots = append(p.aggSlots, b.Slot(c.Field))
		switch c.Source {
		case "LISTAGG", "ARRAY_AGG", "COLLECT", "JSON_ARRAYAGG", "JSON_OBJECTAGG":
			p.inOrder = true
		}
		p.texts = append(p.texts, cmp.Or(texts[c.Field], c.Source+" "+c.Field))
		p.offs = append(p.offs, p.words)
		p.words += c.Words()
	}
	if k.Zone != "" {
		p.zone, _ = time.LoadLocation(k.Zone)
	}
	return func() steps.Step { return p.stage() }, nil
}

// KeptIn is where the step says that its state is; "" where it says nothing.
func (k *Config) KeptIn() string { return k.State }

// Definition is what state depends on: state of another definition can't be used.
func (k *Config) Definition() string {
	var s strings.Builder
	size, every := k.lengths()
	fmt.Fprintf(&s, "size=%s every=%s cumulate=%t session=%s time=%s offset=%s zone=%s emit=%s", size, every, k.Cumulate != nil, k.Session, k.Time.Name, time.Duration(k.Offset), k.Zone, k.Emit)
	for _, f := range k.By {
		fmt.Fprintf(&s, " by=%q", f.Name)
	}
	for i := range k.Select {
		if e := k.Select[i].Value.Expr; e != nil {
			fmt.Fprintf(&s, " %s=%q", k.Select[i].Key, e.Source())
		}
	}
	if k.Having.Expr != nil {
		fmt.Fprintf(&s, " having=%q", k.Having.Source())
	}
	return s.String()
}
