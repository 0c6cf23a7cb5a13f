package config

import (
	"fmt"
	"sort"
	"strings"
)

// Nearest gives the candidate that name was probably meant to be, "" where none is near.
func Nearest(name string, candidates []string) string {
	if len(name) < 2 {
		return ""
	}
	best, dist := "", 1+max(1, min(3, len(name)/3))
	for _, c := range candidates {
		if strings.EqualFold(c, name) {
			return c
		}
		if d := distance(strings.ToLower(name), strings.ToLower(c), dist); d < dist {
			best, dist = c, d
		}
	}
	return best
}

// Meant is "; did you mean X?", or the list of what there is where it is short, or nothing.
func Meant(name string, candidates []string) string {
	if n := Nearest(name, candidates); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	if len(candidates) > 0 && len(candidates) <= 20 {
		c := append([]string(nil), candidates...)
		sort.Strings(c)
		return "; known here: " + strings.Join(c, ", ")
	}
	return ""
}

// distance is the optimal string alignment distance (insert, delete, replace, swap neighbours),
// or limit where it is at least that.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	var two, prev, cur []int
	cur = make([]int, len(b)+1)
	for j := range cur {
		cur[j] = j
	}
	for i := 1; i <= len(a); i++ {
		two, prev, cur = prev, cur, make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			c := 1
			if a[i-1] == b[j-1] {
				c = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+c)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], two[j-2]+1)
			}
		}
	}
	return min(cur[len(b)], limit)
}
