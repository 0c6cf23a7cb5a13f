package steps

import "github.com/rsetl/rsetl/record"

// SlotsUnder are the slots of a path and of all fields below it. Call it when the table is
// complete: in a Maker, not in Build.
func SlotsUnder(t *record.Table, path string) []int {
	var out []int
	for i, n := range t.Names() {
		if record.Under(n, path) {
			out = append(out, i)
		}
	}
	return out
}
