package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestUnnest: records that are made of one come in its place, whatever `when` leaves out and several workers do; the ledger adds up.
func TestUnnest(t *testing.T) {
	e := newEnv(t)
	const n = 20_000
	e.write("in", lines(n, func(i int) string { return fmt.Sprintf(`{"n":%d,"list":[%d,[1,2],"x"]}`, i, i) }))
	rep := e.once(`
source: {file: {paths: [DIR/in]}, codec: json}
workers: 4
memory: 1MiB
steps:
  - unnest: list
    when: n % 3 = 0
  - unnest: list
    when: n % 2 = 0
    on_error: keep
  - filter: n > 5
sinks:
  - collect: {into: ` + t.Name() + `}
`)
	var want []string
	made, absorbed, filtered := 0, 0, 0
	row := func(n int, list string) { want = append(want, fmt.Sprintf(`{"n":%d,"list":%s}`, n, list)) }
	for i := range n {
		switch {
		case i%3 == 0 && i%2 == 0:
			made, absorbed = made+3+2, absorbed+1+1
			want = append(want, fmt.Sprintf(`{"n":%d,"list":%d,`, i, i)) // no text and no array: kept with its error
			row(i, "1")
			row(i, "2")
			row(i, `"x"`)
		case i%3 == 0:
			made, absorbed = made+3, absorbed+1
			row(i, fmt.Sprint(i))
			row(i, "[1,2]")
			row(i, `"x"`)
		case i%2 == 0:
			made, absorbed = made+3, absorbed+1
			row(i, fmt.Sprint(i))
			row(i, "[1,2]")
			row(i, `"x"`)
		default:
			row(i, fmt.Sprintf(`[%d,[1,2],"x"]`, i))
		}
		if i <= 5 {
			filtered += len(want)
			want = nil
		}
	}
	got := rowsOf(t.Name()).all()
	for i := range min(len(got), len(want)) {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Fatalf("row %d is %s, want %s", i, got[i], want[i])
		}
	}
	if len(got) != len(want) || rep.In != n || rep.Made != int64(made) || rep.Absorbed != int64(absorbed) || rep.Out != int64(len(want)) || rep.Filtered != int64(filtered) || rep.InFlight != 0 {
		t.Errorf("%d rows, want %d; %+v", len(got), len(want), rep)
	}
}
