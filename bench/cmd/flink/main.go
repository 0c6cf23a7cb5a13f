// Command flink compares rsetl with Flink: an Apache log, errors by minute and status. Both run with one worker on the same file;
// their results must be the same. It needs Java and Maven, which gets Flink's published jars.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rsetl/rsetl/bench"
)

const pipeline = `source: {file: {paths: [%[1]s], start: beginning}}
workers: 1
steps:
  - grok: '%%{COMBINEDAPACHELOG}'
  - date: {field: timestamp, formats: ['dd/MMM/yyyy:HH:mm:ss Z']}
  - filter: http.response.status_code >= 500
  - set: {status: http.response.status_code, bytes: http.response.body.bytes}
  - window:
      tumble: 1m
      time: '@timestamp'
      delay: 5s
      by: [status]
      select: {hits: COUNT(*), bytes: 'COALESCE(SUM(bytes), 0)'}
sinks:
  - file: {path: %[2]s, mode: overwrite}
`

// use is what a process has used.
type use struct {
	cpu, wall time.Duration
	peak      int64 // bytes
}

func main() {
	runs := flag.Int("runs", 3, "how often each runs; the median counts")
	size := flag.String("size", "450MB", "the log's size; lines have 228 bytes")
	flag.Parse()
	if err := compare(*runs, *size); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func compare(runs int, size string) error {
	bytes, err := bench.ParseSize(size)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rsetl-flink-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	log, one := filepath.Join(dir, "access.log"), filepath.Join(dir, "one.log")
	if _, err := bench.WriteFile(log, bench.Kind("apache"), bytes); err != nil {
		return err
	}
	lines, first, err := count(log)
	if err != nil {
		return err
	}
	if err := os.WriteFile(one, []byte(first+"\n"), 0o644); err != nil {
		return err
	}
	bin := filepath.Join(dir, "rsetl")
	if out, err := exec.Command("go", "build", "-o", bin, "./cmd/rsetl").CombinedOutput(); err != nil {
		return fmt.Errorf("build rsetl: %w: %s", err, out)
	}
	const java = "bench/peers/flink"
	mvn := exec.Command("mvn", "-q", "-B", "compile", "dependency:build-classpath", "-Dmdep.outputFile=target/cp.txt")
	mvn.Dir = java
	if out, err := mvn.CombinedOutput(); err != nil {
		return fmt.Errorf("build the Flink job: %w: %s", err, out)
	}
	cp, err := os.ReadFile(java + "/target/cp.txt")
	if err != nil {
		return err
	}
	results := filepath.Join(dir, "out.json")
	rsetl := func(file string) (use, []string, error) {
		conf := filepath.Join(dir, "p.yaml")
		if err := os.WriteFile(conf, fmt.Appendf(nil, pipeline, file, results), 0o644); err != nil {
			return use{}, nil, err
		}
		os.Remove(results)
		cmd := exec.Command(bin, "run", "--once", conf)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		u, _, err := run(cmd)
		if err != nil {
			return u, nil, err
		}
		rows, err := rowsOf(results)
		return u, rows, err
	}
	flink := func(file string) (use, []string, error) {
		cmd := exec.Command("java", "--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED",
			"-cp", java+"/target/classes:"+string(cp), "Windows", file)
		u, out, err := run(cmd)
		return u, strings.Fields(strings.ReplaceAll(strings.TrimSpace(out), " ", "_")), err
	}
	fmt.Printf("%d lines, errors by minute and status; CPU is user and system of all threads, start-up apart (a run on one line)\n", lines)
	var per []float64
	for _, p := range []struct {
		name string
		run  func(string) (use, []string, error)
	}{{"rsetl", rsetl}, {"flink", flink}} {
		start, err := median(runs, func() (use, error) { u, _, err := p.run(one); return u, err })
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		var rows []string
		full, err := median(runs, func() (u use, err error) { u, rows, err = p.run(log); return })
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		slices.Sort(rows)
		cpu := full.cpu - start.cpu
		fmt.Printf("%-6s %6.2f s CPU, %6.0f ns a line, %9.0f lines a CPU second; start-up %5.2f s CPU; %6.2f s in all; peak %4d MB; %d results, %016x\n", p.name, cpu.Seconds(),
			float64(cpu.Nanoseconds())/float64(lines), float64(lines)/cpu.Seconds(), start.cpu.Seconds(), full.wall.Seconds(), full.peak>>20, len(rows), sum(rows))
		per = append(per, float64(lines)/cpu.Seconds(), float64(full.peak), float64(sum(rows)))
	}
	if per[2] != per[5] {
		return fmt.Errorf("the results differ")
	}
	fmt.Printf("rsetl does %.1f times Flink's lines a CPU second, in 1/%.0f of its memory\n", per[0]/per[3], per[4]/per[1])
	return nil
}

func run(cmd *exec.Cmd) (u use, out string, err error) {
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return u, "", fmt.Errorf("%w: %s", err, stderr.String())
	}
	u.wall = time.Since(begin)
	ru := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	u.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	u.peak = int64(ru.Maxrss) << 10
	return u, stdout.String(), nil
}

func median(n int, f func() (use, error)) (use, error) {
	var all []use
	for range n {
		u, err := f()
		if err != nil {
			return u, err
		}
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b use) int { return int(a.cpu - b.cpu) })
	return all[n/2], nil
}

func count(path string) (n int, first string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		if n++; n == 1 {
			first = sc.Text()
		}
	}
	return n, first, sc.Err()
}

// rowsOf reads rsetl's results in the form in which the Flink job prints its own.
func rowsOf(path string) (rows []string, err error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	for d.More() {
		var r struct {
			Start  time.Time `json:"window_start"`
			Status int
			Hits   int64
			Bytes  int64
		}
		if err := d.Decode(&r); err != nil {
			return nil, err
		}
		rows = append(rows, fmt.Sprintf("%d_%d_%d_%d", r.Start.Unix(), r.Status, r.Hits, r.Bytes))
	}
	return rows, nil
}

// sum is a checksum of rows.
func sum(rows []string) (h uint64) {
	h = 14695981039346656037
	for _, r := range rows {
		for i := range len(r) {
			h = (h ^ uint64(r[i])) * 1099511628211
		}
	}
	return h
}
