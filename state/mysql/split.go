package mysql

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"unicode/utf8"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// raw is the part of a row that can't be text: its column is NULL where there is none. JSON keeps []byte as base64.
type raw struct {
	Path     []byte       `json:"path,omitempty"`
	Meta     [][2][]byte  `json:"meta,omitempty"`
	Counters []rawCounter `json:"counters,omitempty"`
}

type rawCounter struct {
	Name  []byte `json:"name"`
	Value int64  `json:"value"`
}

// encodeJSON gives v as compact JSON. What is given here can be encoded.
func encodeJSON(v any) []byte {
	var w bytes.Buffer
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(w.Bytes(), []byte("\n"))
}

// splitCells is a split's row behind the columns pipeline and split.
func splitCells(dst []cell, sp *state.Split) []cell {
	var r raw
	if !utf8.ValidString(sp.Path) {
		r.Path = []byte(sp.Path)
	}
	meta := sp.Meta
	for k, v := range sp.Meta {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			if len(r.Meta) == 0 {
				meta = maps.Clone(meta)
			}
			delete(meta, k)
			r.Meta = append(r.Meta, [2][]byte{[]byte(k), []byte(v)})
		}
	}
	dst = append(dst, textCell([]byte(text([]byte(sp.Path)))), intCell(sp.Epoch))
	if n := len(sp.Recent); n > 0 {
		dst = append(dst, intCell(sp.Recent[n-1].Offset), intCell(int64(sp.Recent[n-1].Index)))
	} else {
		dst = append(dst, cell{}, cell{})
	}
	done := int64(0)
	if sp.Done {
		done = 1
	}
	dst = append(dst, intCell(done))
	if len(meta) > 0 {
		dst = append(dst, textCell(encodeJSON(meta)))
	} else {
		dst = append(dst, cell{})
	}
	recent := make([][2]int64, len(sp.Recent))
	for i, p := range sp.Recent {
		recent[i] = [2]int64{p.Offset, int64(p.Index)}
	}
	dst = append(dst, textCell(encodeJSON(recent)))
	if r.Path != nil || r.Meta != nil {
		return append(dst, blobCell(encodeJSON(r)))
	}
	return append(dst, cell{})
}

// splitColumns are those of splitCells that a read needs.
const splitColumns = "split, path, epoch, done, meta, recent, raw"

type scanner interface{ Scan(...any) error }

func scanSplit(rows scanner) (sp state.Split, err error) {
	var meta, recent, rest []byte
	if err := rows.Scan(&sp.ID, &sp.Path, &sp.Epoch, &sp.Done, &meta, &recent, &rest); err != nil {
		return sp, err
	}
	bad := func(what string, err error) (state.Split, error) {
		return sp, fmt.Errorf("%w: split %s: its %s can't be read: %v", state.ErrCorrupt, sp.ID, what, err)
	}
	if meta != nil {
		if err := json.Unmarshal(meta, &sp.Meta); err != nil {
			return bad("meta", err)
		}
	}
	var at [][2]int64
	if err := json.Unmarshal(recent, &at); err != nil {
		return bad("positions", err)
	}
	for _, p := range at {
		sp.Recent = append(sp.Recent, record.Position{Offset: p[0], Index: int32(p[1])})
	}
	if rest != nil {
		var r raw
		if err := json.Unmarshal(rest, &r); err != nil {
			return bad("raw", err)
		}
		if r.Path != nil {
			sp.Path = string(r.Path)
		}
		for _, kv := range r.Meta {
			if sp.Meta == nil {
				sp.Meta = map[string]string{}
			}
			sp.Meta[string(kv[0])] = string(kv[1])
		}
	}
	return sp, nil
}

// encodeCounters gives the columns counters and raw.
func encodeCounters(c map[string]int64) (counters, rest []byte) {
	valid := make(map[string]int64, len(c))
	var r raw
	for k, v := range c {
		if utf8.ValidString(k) {
			valid[k] = v
		} else {
			r.Counters = append(r.Counters, rawCounter{[]byte(k), v})
		}
	}
	if r.Counters != nil {
		rest = encodeJSON(r)
	}
	return encodeJSON(valid), rest
}

func decodeCounters(counters, rest []byte) (map[string]int64, error) {
	c := map[string]int64{}
	if counters != nil {
		if err := json.Unmarshal(counters, &c); err != nil {
			return nil, fmt.Errorf("%w: the counters can't be read: %v", state.ErrCorrupt, err)
		}
	}
	if rest != nil {
		var r raw
		if err := json.Unmarshal(rest, &r); err != nil {
			return nil, fmt.Errorf("%w: the counters can't be read: %v", state.ErrCorrupt, err)
		}
		for _, k := range r.Counters {
			c[string(k.Name)] = k.Value
		}
	}
	return c, nil
}
