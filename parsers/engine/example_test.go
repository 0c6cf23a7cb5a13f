package engine_test

import (
	"fmt"

	"github.com/rsetl/rsetl/parsers/engine"
)

func ExampleCompile() {
	r, err := engine.Compile(`^(?<host>\S+) \[(?<time>[^\]]+)\] (?<status>\d{3})(?!\d)`)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := r.Matcher() // for one goroutine
	caps := make([]int, 2*(r.Groups+1))
	line := []byte(`web1 [07/Mar/2026] 503 -`)
	if ok, err := m.Match(line, caps); ok && err == nil {
		fmt.Printf("%s %s %s\n", line[caps[2]:caps[3]], line[caps[4]:caps[5]], line[caps[6]:caps[7]])
	}
	if p, ok := r.Partial([]byte(`web1 [07/Mar/2026] 5O3 -`)); ok {
		fmt.Printf("matched up to %d, then wants %s\n", p.To, p.Wants)
	}
	// Output:
	// web1 07/Mar/2026 503
	// matched up to 20, then wants [0-9]
}

func ExampleNewSet() {
	var list []*engine.Regex
	for _, src := range []string{`^GET (?<path>\S+)`, `^(?<n>\d+)$`} {
		r, err := engine.Compile(src)
		if err != nil {
			fmt.Println(err)
			return
		}
		list = append(list, r)
	}
	m := engine.NewSet(list).Matcher()
	caps := [][]int{make([]int, 4), make([]int, 4)}
	line := []byte("4711")
	k, err := m.Match(line, caps)
	fmt.Println(k, err, string(line[caps[k][2]:caps[k][3]]))
	// Output: 1 <nil> 4711
}
