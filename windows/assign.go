package windows

import "time"

// assigner cuts time into slices and windows. It counts in milliseconds: instants since 1970 in UTC, and places, which are
// instants or, where there is a zone, what its clocks show, so that days of 23 and 25 hours are days.
type assigner struct {
	size, every, offset int64
	zone                *time.Location
	grow                bool // windows begin together, each ends `every` later
}

func floorTo(x, step, offset int64) int64 {
	r := (x - offset) % step
	if r < 0 {
		r += step
	}
	return x - r
}

// place is where an instant lies.
func (a *assigner) place(ms int64) int64 {
	if a.zone == nil {
		return ms
	}
	_, off := time.UnixMilli(ms).In(a.zone).Zone()
	return ms + int64(off)*1000
}

// instant is the first instant at a place.
func (a *assigner) instant(place int64) int64 {
	if a.zone == nil {
		return place
	}
	t := time.UnixMilli(place).UTC()
	ms := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), a.zone).UnixMilli()
	if short := place - a.place(ms); short > 0 { // clocks jump over the place
		ms += short
	}
	return ms
}

// slice is the start of the slice that a place is in; it ends `every` later.
func (a *assigner) slice(place int64) int64 { return floorTo(place, a.every, a.offset) }

// start is the start of the window that ends there.
func (a *assigner) start(end int64) int64 {
	if a.grow {
		return floorTo(end-1, a.size, a.offset)
	}
	return end - a.size
}

// lastEnd is the end of the last window that a slice is part of.
func (a *assigner) lastEnd(slice int64) int64 {
	if a.grow {
		return floorTo(slice, a.size, a.offset) + a.size
	}
	return slice + a.size
}
