package statetest

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// Keyed is a state.Keyed of entries in memory.
type Keyed map[string][]byte

func (k Keyed) Range(prefix, after []byte, f func(key, value []byte) error) error {
	for _, key := range slices.Sorted(maps.Keys(k)) {
		if !strings.HasPrefix(key, string(prefix)) || after != nil && key <= string(after) {
			continue
		}
		if err := f([]byte(key), bytes.Clone(k[key])); err != nil {
			return err
		}
	}
	return nil
}

func (k Keyed) Get(keys [][]byte, f func(i int, value []byte) error) error {
	for i, key := range keys {
		if v, ok := k[string(key)]; ok {
			if err := f(i, bytes.Clone(v)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k Keyed) Rows() bool { return false }
