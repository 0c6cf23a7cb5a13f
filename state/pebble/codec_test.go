package pebble

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// What is in a store must stay readable: this is version 1 for ever.
const splitGolden = "\x01\x06\x01\x02/a\x01\x01k\x03v\x00\xff\x02\x0a\x02\x01\x00"

func TestSplitGolden(t *testing.T) {
	s := state.Split{ID: "id", Epoch: 3, Path: "/a", Meta: map[string]string{"k": "v\x00\xff"}, Done: true,
		Recent: []record.Position{{Offset: 5, Index: 1}, {Offset: -1}}}
	if got := string(appendSplit(nil, &s)); got != splitGolden {
		t.Errorf("the format changed: %q", got)
	}
	got, err := decodeSplit("id", []byte(splitGolden))
	if err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range len(splitGolden) {
		if _, err := decodeSplit("id", []byte(splitGolden[:n])); err == nil {
			t.Errorf("the first %d bytes are taken", n)
		}
	}
}

func FuzzDecodeSplit(f *testing.F) {
	f.Add([]byte(splitGolden))
	f.Fuzz(func(t *testing.T, p []byte) {
		decodeCounters(p)
		s, err := decodeSplit("id", p)
		if err != nil {
			return
		}
		q := appendSplit(nil, &s)
		again, err := decodeSplit("id", q)
		if err != nil || !bytes.Equal(appendSplit(nil, &again), q) {
			t.Fatalf("%+v became %+v, %v", s, again, err)
		}
	})
}
