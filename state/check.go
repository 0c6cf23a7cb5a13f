package state

import (
	"fmt"
	"math"
	"strings"
)

// CheckNames refuses what can't be the name of a pipeline, a stage or an outbox target in any store.
func CheckNames(names ...string) error {
	for _, n := range names {
		if n == "" || strings.IndexByte(n, 0) >= 0 {
			return fmt.Errorf("%q can't be the name of a pipeline, stage or outbox target", n)
		}
	}
	return nil
}

// Check refuses a commit that no store takes: names that names refuses, the pipeline's among them, and firings without a sequence number.
func (c *Commit) Check(pipeline string, names func(...string) error) error {
	if err := names(pipeline); err != nil {
		return err
	}
	for _, f := range c.Firings {
		if err := names(f.Target); err != nil {
			return err
		}
		if f.Seq < 0 || f.Seq == math.MaxInt64 {
			return fmt.Errorf("firing to %s: %d is no sequence number", f.Target, f.Seq)
		}
	}
	for t := range c.Acked {
		if err := names(t); err != nil {
			return err
		}
	}
	for i := range c.State {
		if i > 0 && c.State[i].Stage == c.State[i-1].Stage {
			continue
		}
		if err := names(c.State[i].Stage); err != nil {
			return err
		}
	}
	return nil
}
