package pipeline

import (
	"sync"
	"time"

	"github.com/rsetl/rsetl/sinks/batch"
	"github.com/rsetl/rsetl/steps"
)

// ledger counts every record's fate: in + made = out + filtered + absorbed + dead + in_flight,
// cumulative over the pipeline's state.
type ledger struct {
	mu     sync.Mutex
	passed counts // passed the ordered end
	ahead  int64  // dispatched and not yet there
	before int64  // `in` at the run's start
	lost   int64  // bytes that could not be read
	gone   int64  // dead letters that were let go, by the runs before
	run    time.Duration
	start  time.Time
	cutAt  counts    // as the last marker took it
	last   time.Time // of the last commit
}

func (l *ledger) load(c map[string]int64) {
	l.passed = counts{in: c["in"], made: c["made"], out: c["out"], filtered: c["filtered"], absorbed: c["absorbed"], dead: c["dead"]}
	l.before, l.lost, l.gone, l.start = l.passed.in, c["lost_bytes"], c["dead_let_go"], time.Now()
}

func (l *ledger) read(n int64) {
	l.mu.Lock()
	l.ahead += n
	l.mu.Unlock()
}

func (l *ledger) pass(c counts) {
	l.mu.Lock()
	l.passed.add(c)
	l.ahead -= c.in
	l.mu.Unlock()
}

func (l *ledger) lose(bytes int64) {
	l.mu.Lock()
	l.lost += bytes
	l.mu.Unlock()
}

func (l *ledger) ended(d time.Duration) {
	l.mu.Lock()
	l.run = d
	l.mu.Unlock()
}

// cut puts the counters of all that has passed into a commit.
func (l *ledger) cut(into map[string]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.passed
	into["in"], into["made"], into["out"], into["filtered"], into["absorbed"], into["dead"] = p.in, p.made, p.out, p.filtered, p.absorbed, p.dead
	into["lost_bytes"], into["dead_let_go"] = l.lost, l.gone
	l.cutAt = p
}

// moved tells whether anything has passed since the last marker.
func (l *ledger) moved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.passed != l.cutAt
}

func (l *ledger) committed(at time.Time) {
	l.mu.Lock()
	l.last = at
	l.mu.Unlock()
}

func loadCounts(c map[string]int64, sink string) batch.Counts {
	p := "sink." + sink + "."
	return batch.Counts{Received: c[p+"received"], Delivered: c[p+"delivered"], Rejected: c[p+"rejected"], Skipped: c[p+"skipped"]}
}

func putCounts(into map[string]int64, sink string, c batch.Counts) {
	p := "sink." + sink + "."
	into[p+"received"], into[p+"delivered"], into[p+"rejected"], into[p+"skipped"] = c.Received, c.Delivered, c.Rejected, c.Skipped
}

// Report is a pipeline's ledger for `run --report` and status: counts are cumulative over the
// state, Seconds and RecordsPerSecond are this run's.
type Report struct {
	Pipeline         string       `json:"pipeline"`
	In               int64        `json:"in"`
	Made             int64        `json:"made"`
	Out              int64        `json:"out"`
	Filtered         int64        `json:"filtered"`
	Absorbed         int64        `json:"absorbed"`
	Dead             int64        `json:"dead"`
	InFlight         int64        `json:"in_flight"`
	LostBytes        int64        `json:"lost_bytes,omitempty"`
	DeadLetGo        int64        `json:"dead_let_go,omitempty"` // of Dead, letters that were let go since there were too many
	Seconds          float64      `json:"seconds"`
	RecordsPerSecond float64      `json:"records_per_second"`
	Sinks            []SinkReport `json:"sinks"`
	ThisRun          int64        `json:"-"` // of In, what this run has read
	// Stages is what windows and other stages hold, by step.
	Stages map[string]steps.Holding `json:"stages,omitempty"`
	// DeadLetters is the dead letters' file, where there is one.
	DeadLetters string `json:"dead_letters,omitempty"`
}

// SinkReport is a sink's ledger: received = delivered + rejected + skipped + held.
type SinkReport struct {
	Name      string `json:"name"`
	Received  int64  `json:"received"`
	Delivered int64  `json:"delivered"`
	Rejected  int64  `json:"rejected"`
	Skipped   int64  `json:"skipped"`
	Held      int64  `json:"held"`
}

// Report gives the ledger as it is now.
func (r *Runner) Report() Report {
	l := &r.ledger
	l.mu.Lock()
	p, ahead, lost := l.passed, l.ahead, l.lost
	d := l.run
	if d == 0 {
		d = time.Since(l.start)
	}
	before := l.before
	l.mu.Unlock()
	rep := Report{Pipeline: r.plan.Name, In: p.in + ahead, Made: p.made, Out: p.out, Filtered: p.filtered, Absorbed: p.absorbed, Dead: p.dead,
		LostBytes: lost, DeadLetGo: r.ledger.gone + r.letters.LetGo(), Seconds: d.Seconds()}
	rep.InFlight = rep.In + rep.Made - rep.Out - rep.Filtered - rep.Absorbed - rep.Dead
	rep.ThisRun = rep.In - before
	rep.Stages = r.StageStatus()
	if d > 0 {
		rep.RecordsPerSecond = float64(rep.In-before) / d.Seconds()
	}
	for i, c := range r.caches {
		n, held := c.Counts()
		rep.Sinks = append(rep.Sinks, SinkReport{r.plan.Sinks[i].Name, n.Received, n.Delivered, n.Rejected, n.Skipped, held})
	}
	if r.letters.Count() > 0 || p.dead > 0 {
		rep.DeadLetters = r.o.Letters
	}
	return rep
}

// Troubles is what the run retries at the moment, by part: source, dead letters, state, sink NAME.
func (r *Runner) Troubles() map[string]string {
	out := r.trouble.all()
	for i, c := range r.caches {
		if st := c.Status(); st.Blocked && st.Err != nil {
			out["sink "+r.plan.Sinks[i].Name] = st.Err.Error()
		}
	}
	return out
}

// Name is the pipeline's name.
func (r *Runner) Name() string { return r.plan.Name }

// NewLetters is how many dead letters this run has made, sinks' rejects included.
func (r *Runner) NewLetters() int64 {
	rep := r.Report()
	n := rep.Dead - r.snap.Counters["dead"]
	for _, s := range rep.Sinks {
		n += s.Rejected - loadCounts(r.snap.Counters, s.Name).Rejected
	}
	return n
}
