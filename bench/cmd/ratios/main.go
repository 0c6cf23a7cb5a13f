// Command ratios runs rsetl, the hand-written loops and Benthos as whole programs over the same generated files and prints
// what each costs: CPU (user and system) by line, the ratio to the baseline, the peak of resident memory.
//
//	go run ./bench/cmd/ratios                     everything
//	go run ./bench/cmd/ratios -jobs filter -runs 9 -peers=false
//
// Programs are run in turn, one of each a round, so that what else the machine does meets all alike; a ratio is that of two
// runs of the same round. All run with GOMAXPROCS=1. Outputs are compared before anything is measured.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rsetl/rsetl/bench"
)

var (
	size   = flag.String("size", "228MB", "size of the generated Apache log; the JSON log has the same")
	runs   = flag.Int("runs", 7, "rounds")
	peers  = flag.Bool("peers", true, "build and run Benthos too (one round in three: it is slow)")
	jobs   = flag.String("jobs", "filter,tojson,json,apache,apache5xx", "which jobs")
	big    = flag.String("big", "1GB", "size of the file for the memory curve; empty: leave it out")
	starts = flag.Int("starts", 20, "how often to measure the time to the first record; 0: leave it out")
	dir    = flag.String("dir", "", "where to put files; default: a temporary folder, removed at the end")
	bin    = flag.String("rsetl", "", "the program to measure; default: build it")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

type tool struct {
	dir, rsetl, loop, benthos string
	env                       []string
}

func run(ctx context.Context) (err error) {
	t := &tool{dir: *dir, env: append(os.Environ(), "GOMAXPROCS=1")}
	if t.dir == "" {
		if t.dir, err = os.MkdirTemp("", "rsetl-ratios-"); err != nil {
			return err
		}
		defer os.RemoveAll(t.dir)
	} else if t.dir, err = filepath.Abs(t.dir); err != nil {
		return err
	} else if err = os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	if err := t.build(ctx); err != nil {
		return err
	}
	fmt.Printf("%s; %s, %d CPUs, GOMAXPROCS=1; %s a file, %d rounds\n\n", time.Now().Format("2006-01-02 15:04"), cpuName(), runtime.NumCPU(), *size, *runs)
	if err := t.ratios(ctx); err != nil {
		return err
	}
	if *big != "" {
		if err := t.memory(ctx); err != nil {
			return err
		}
	}
	if *starts > 0 {
		return t.start(ctx)
	}
	return nil
}

func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

func cpuName() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for _, l := range strings.Split(string(b), "\n") {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}

func (t *tool) build(ctx context.Context) error {
	t.rsetl, t.loop, t.benthos = filepath.Join(t.dir, "bin-rsetl"), filepath.Join(t.dir, "bin-loop"), filepath.Join(t.dir, "bin-benthos")
	list := [][3]string{{"", t.loop, "./bench/cmd/loop"}}
	if *bin != "" {
		t.rsetl = *bin
	} else {
		list = append(list, [3]string{"", t.rsetl, "./cmd/rsetl"})
	}
	if *peers {
		list = append(list, [3]string{"bench/peers", t.benthos, "./benthos"})
	}
	for _, b := range list {
		c := exec.CommandContext(ctx, "go", "build", "-o", b[1], b[2])
		c.Dir = filepath.Join(root(), b[0])
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		c.Stderr = os.Stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("build %s: %w", b[2], err)
		}
	}
	return nil
}

// input makes the file of that kind and size unless it is there.
func (t *tool) input(kind bench.Kind, size string) (path string, lines int64, err error) {
	n, err := bench.ParseSize(size)
	if err != nil {
		return "", 0, err
	}
	path = filepath.Join(t.dir, fmt.Sprintf("%s-%s.log", kind, size))
	lines, err = bench.WriteFile(path, kind, n)
	if err != nil {
		return "", 0, err
	}
	// What is dirty would be written back while something else is measured.
	f, err := os.Open(path)
	if err == nil {
		err = f.Sync()
		f.Close()
	}
	return path, lines, err
}

// cost is what one run took.
type cost struct {
	cpu, wall time.Duration
	rss       int64 // peak, bytes
}

// sample is called while a program runs, with its resident memory in bytes.
type sample func(at time.Duration, rss int64)

func (t *tool) exec(ctx context.Context, each sample, name string, args ...string) (cost, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Env, c.Dir = t.env, t.dir
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	start := time.Now()
	if err := c.Start(); err != nil {
		return cost{}, err
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	peak := int64(0)
	for {
		select {
		case err := <-done:
			if err != nil {
				return cost{}, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out.String())
			}
			return cost{c.ProcessState.UserTime() + c.ProcessState.SystemTime(), time.Since(start), peak}, nil
		case <-tick.C:
			rss, hwm := resident(c.Process.Pid)
			peak = max(peak, hwm)
			if each != nil && rss > 0 {
				each(time.Since(start), rss)
			}
		}
	}
}

// resident gives a process' resident memory and its peak. (The peak that wait4 gives begins with the parent's.)
func resident(pid int) (rss, hwm int64) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0
	}
	for _, l := range strings.Split(string(b), "\n") {
		k, v, _ := strings.Cut(l, ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
		switch k {
		case "VmRSS":
			rss = n << 10
		case "VmHWM":
			hwm = n << 10
		}
	}
	return rss, hwm
}

// program is one way to do a job.
type program struct {
	name  string
	every int // run in one round of so many
	run   func() (cost, error)
	out   string
	costs map[int]cost
}

func (t *tool) programs(ctx context.Context, j *bench.Job, in string) ([]*program, error) {
	out := func(who string) string { return filepath.Join(t.dir, j.Name+"."+who+".out") }
	write := func(who, text string) (string, error) {
		path := filepath.Join(t.dir, j.Name+"."+who+".yaml")
		return path, os.WriteFile(path, []byte(text), 0o644)
	}
	list := []*program{}
	add := func(name string, every int, args ...string) {
		o := out(name)
		list = append(list, &program{name: name, every: every, out: o, costs: map[int]cost{}, run: func() (cost, error) {
			if err := os.Remove(o); err != nil && !os.IsNotExist(err) {
				return cost{}, err
			}
			return t.exec(ctx, nil, args[0], args[1:]...)
		}})
	}
	add("loop", 1, t.loop, j.Loop, in, out("loop"))
	conf, err := write("rsetl", j.Pipeline(in, out("rsetl"), 1))
	if err != nil {
		return nil, err
	}
	add("rsetl", 1, t.rsetl, "run", "--once", conf)
	if j.Also != "" {
		add(j.Also, 1, t.loop, j.Also, in, out(j.Also))
	}
	if *peers && j.Benthos != "" {
		if conf, err = write("benthos", j.BenthosConfig(in, out("benthos"))); err != nil {
			return nil, err
		}
		add("benthos", 3, t.benthos, "-c", conf)
	}
	return list, nil
}

func (t *tool) ratios(ctx context.Context) error {
	type row struct {
		j     *bench.Job
		lines int64
		list  []*program
	}
	var rows []*row
	files := map[bench.Kind]string{}
	counts := map[bench.Kind]int64{}
	for _, name := range strings.Split(*jobs, ",") {
		j := bench.FindJob(name)
		if j == nil {
			return fmt.Errorf("there is no job %q", name)
		}
		if files[j.Input] == "" {
			var err error
			if files[j.Input], counts[j.Input], err = t.input(j.Input, *size); err != nil {
				return err
			}
		}
		list, err := t.programs(ctx, j, files[j.Input])
		if err != nil {
			return err
		}
		rows = append(rows, &row{j, counts[j.Input], list})
	}

	fmt.Println("Outputs, line for line (JSON with its keys sorted, numbers as they read):")
	for _, r := range rows {
		v, list := r.j, r.list
		if r.j.Verify != nil {
			var err error
			v = r.j.Verify
			if list, err = t.programs(ctx, v, files[v.Input]); err != nil {
				return err
			}
		}
		if err := same(v, list); err != nil {
			return err
		}
	}

	for n := range *runs {
		for _, r := range rows {
			for _, p := range r.list {
				if n%p.every != 0 {
					continue
				}
				c, err := p.run()
				if err != nil {
					return err
				}
				p.costs[n] = c
			}
		}
	}

	fmt.Printf("\n| job | program | CPU µs/line | wall µs/line | × loop (min–max) | lines/CPU s | peak MiB |\n|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		base := r.list[0]
		for _, p := range r.list {
			var cpu, wall, ratio []float64
			rss := int64(0)
			for n, c := range p.costs {
				cpu = append(cpu, c.cpu.Seconds()*1e6/float64(r.lines))
				wall = append(wall, c.wall.Seconds()*1e6/float64(r.lines))
				ratio = append(ratio, float64(c.cpu)/float64(base.costs[n].cpu))
				rss = max(rss, c.rss)
			}
			fmt.Printf("| %s | %s | %.3f | %.3f | %.2f (%.2f–%.2f) | %.0f | %.1f |\n", r.j.Name, p.name, median(cpu), median(wall),
				median(ratio), slices.Min(ratio), slices.Max(ratio), 1e6/median(cpu), float64(rss)/(1<<20))
		}
	}
	if *peers {
		fmt.Println()
		for _, r := range rows {
			var ratio []float64
			b, mine := r.list[len(r.list)-1], r.list[1]
			if b.name != "benthos" {
				continue
			}
			for n, c := range b.costs {
				ratio = append(ratio, float64(c.cpu)/float64(mine.costs[n].cpu))
			}
			fmt.Printf("%s: rsetl does %.1f times (%.1f–%.1f) the lines a CPU second of Benthos\n", r.j.Name, median(ratio), slices.Min(ratio), slices.Max(ratio))
		}
	}
	return nil
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	if len(x)%2 == 0 {
		return (x[len(x)/2-1] + x[len(x)/2]) / 2
	}
	return x[len(x)/2]
}

// same runs all programs once and compares what they wrote.
func same(j *bench.Job, list []*program) error {
	want, wantLines := "", int64(0)
	for _, p := range list {
		if _, err := p.run(); err != nil {
			return err
		}
		sum, n, err := digest(p.out)
		if err != nil {
			return err
		}
		fmt.Printf("  %-10s %-8s %9d lines  %s\n", j.Name, p.name, n, sum[:16])
		if want == "" {
			want, wantLines = sum, n
		}
		if sum != want || n != wantLines {
			return fmt.Errorf("%s: %s and %s give different rows: see %s and %s", j.Name, p.name, list[0].name, p.out, list[0].out)
		}
		if err := os.Remove(p.out); err != nil {
			return err
		}
	}
	return nil
}

// digest hashes a file of JSON objects, each in one form.
func digest(path string) (sum string, lines int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	r := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return hex.EncodeToString(h.Sum(nil)), lines, nil
		}
		if err != nil && err != io.EOF {
			return "", 0, err
		}
		var v any
		if err := json.Unmarshal(line, &v); err != nil {
			return "", 0, fmt.Errorf("%s: line %d: %w", path, lines+1, err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			return "", 0, err
		}
		h.Write(append(b, '\n'))
		lines++
	}
}

// memory shows resident memory over a run on a large file.
func (t *tool) memory(ctx context.Context) error {
	fmt.Printf("\nResident memory on %s, one worker (MiB at tenths of the run; peak):\n", *big)
	for _, name := range strings.Split(*jobs, ",") {
		j := bench.FindJob(name)
		in, _, err := t.input(j.Input, *big)
		if err != nil {
			return err
		}
		out := filepath.Join(t.dir, "memory.out")
		conf := filepath.Join(t.dir, "memory.yaml")
		if err := os.WriteFile(conf, []byte(j.Pipeline(in, out, 1)), 0o644); err != nil {
			return err
		}
		var at []float64
		c, err := t.exec(ctx, func(_ time.Duration, rss int64) { at = append(at, float64(rss)/(1<<20)) }, t.rsetl, "run", "--once", conf)
		if err != nil {
			return err
		}
		fmt.Printf("  %-7s", name)
		for k := 1; k <= 10 && len(at) > 0; k++ {
			fmt.Printf(" %5.1f", at[(len(at)-1)*k/10])
		}
		fmt.Printf("; %.1f (%.1f s, %.2f s of CPU)\n", float64(c.rss)/(1<<20), c.wall.Seconds(), c.cpu.Seconds())
		os.Remove(out)
		os.Remove(in)
	}
	return nil
}

// start measures the time from the start of the process to the first row at its standard output.
func (t *tool) start(ctx context.Context) error {
	in, _, err := t.input(bench.Apache, "1MB")
	if err != nil {
		return err
	}
	few := filepath.Join(t.dir, "few.log")
	if err := os.WriteFile(few, bench.NewLines(bench.Apache).Append(nil), 0o644); err != nil {
		return err
	}
	fmt.Printf("\nStart to first record (stdout sink), median of %d (min–max):\n", *starts)
	for _, c := range []struct {
		name, in string
		args     []string
	}{{"run --once, a file of 1 MB", in, []string{"--once"}}, {"run --once, one line", few, []string{"--once"}},
		{"run, a file of 1 MB", in, nil}, {"run, one line", few, nil}} {
		conf := filepath.Join(t.dir, "start.yaml")
		text := fmt.Sprintf("source:\n  file: {paths: [%s], start: beginning}\nsinks:\n  - stdout: {}\n", strconv.Quote(c.in))
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			return err
		}
		var took []float64
		for range *starts {
			cmd := exec.CommandContext(ctx, t.rsetl, append(append([]string{"run"}, c.args...), conf)...)
			cmd.Env, cmd.Dir = t.env, t.dir
			out, err := cmd.StdoutPipe()
			if err != nil {
				return err
			}
			begin := time.Now()
			if err := cmd.Start(); err != nil {
				return err
			}
			r := bufio.NewReader(out)
			_, err = r.ReadBytes('\n')
			took = append(took, float64(time.Since(begin).Microseconds())/1000)
			if err != nil {
				return fmt.Errorf("no first record: %w", err)
			}
			go io.Copy(io.Discard, r)
			cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				return fmt.Errorf("rsetl: %w", err)
			}
		}
		fmt.Printf("  %-28s %7.1f ms (%.1f–%.1f)\n", c.name, median(took), slices.Min(took), slices.Max(took))
	}
	return nil
}
