// Package each is what transforms share that change fields' values one by one.
package each

import (
	"strconv"
	"strings"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

// Func changes the value of field number k. A message fails the record. Missing values are not shown to it; where Elements is
// set, an array's elements are, in the array's place.
type Func func(b *record.Batch, i, k int, v record.Value) (out record.Value, msg string)

// Step applies a Func to fields. It belongs to one worker.
type Step struct {
	Slots    []int
	Elements bool
	// At is, beside Slots, the number of the array's element that is meant; Whole: the value itself. May be nil.
	At []int
	F  func(b *record.Batch, i, k int, v record.Value) (out record.Value, msg string)

	b     *record.Batch
	each  func(int) record.Outcome
	vals  []record.Value
	items []record.Value
}

var _ steps.Step = (*Step)(nil)

// Apply changes the living records; one that fails is left as it was.
func (s *Step) Apply(b *record.Batch) {
	if s.each == nil {
		s.each = s.one
		s.vals = make([]record.Value, len(s.Slots))
	}
	s.b = b
	b.Each(s.each)
	s.b = nil
}

func (s *Step) one(i int) record.Outcome {
	b := s.b
	for k, slot := range s.Slots {
		v := b.Get(i, slot)
		s.vals[k] = v
		if v.Kind() == record.Missing {
			continue
		}
		if k > 0 { // a field that is named twice has its first change already
			for j := k - 1; j >= 0; j-- {
				if s.Slots[j] == slot {
					v = s.vals[j]
					break
				}
			}
		}
		out, msg := s.value(i, k, v)
		if msg != "" {
			b.Fail(i, msg)
			return record.Failed
		}
		s.vals[k] = out
	}
	for k, slot := range s.Slots {
		b.Set(i, slot, s.vals[k])
	}
	return record.Keep
}

// Whole is the place of a field's value itself.
const Whole = -1 << 31

func (s *Step) value(i, k int, v record.Value) (record.Value, string) {
	if s.At != nil && s.At[k] != Whole {
		return s.element(i, k, v)
	}
	if v.Kind() != record.Array || !s.Elements {
		return s.F(s.b, i, k, v)
	}
	items := append(s.items[:0], s.b.Items(v)...)
	s.items = items
	changed := false
	for n, e := range items {
		if e.IsNull() {
			continue
		}
		out, msg := s.F(s.b, i, k, e)
		if msg != "" {
			return v, msg
		}
		changed = changed || out != e
		items[n] = out
	}
	if !changed {
		return v, ""
	}
	return s.b.PutItems(record.Array, items), ""
}

// Fields prepares the slots of fields that are read and written in place.
func Fields(b *steps.Build, names []string) []int {
	var slots []int
	for _, n := range names {
		slots = append(slots, b.Slot(n))
	}
	return slots
}

// element changes one element of an array; one that isn't there is left out.
func (s *Step) element(i, k int, v record.Value) (record.Value, string) {
	if v.Kind() != record.Array {
		return v, ""
	}
	at := s.At[k]
	if at < 0 {
		at += v.Len()
	}
	if at < 0 || at >= v.Len() {
		return v, ""
	}
	e := s.b.Items(v)[at]
	if e.IsNull() {
		return v, ""
	}
	out, msg := s.F(s.b, i, k, e)
	if msg != "" || out == e {
		return v, msg
	}
	s.items = append(s.items[:0], s.b.Items(v)...)
	s.items[at] = out
	return s.b.PutItems(record.Array, s.items), ""
}

// Element splits `field[2]`, counted from 0 or, where negative, from the end; at is Whole where there is no place.
func Element(name string) (field string, at int) {
	open := strings.LastIndexByte(name, '[')
	if open <= 0 || !strings.HasSuffix(name, "]") {
		return name, Whole
	}
	n, err := strconv.Atoi(name[open+1 : len(name)-1])
	if err != nil || n == Whole {
		return name, Whole
	}
	return name[:open], n
}
