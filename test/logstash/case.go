// Package logstash runs recorded cases of Logstash's filters through rsetl's own steps: options are translated to a pipeline
// file, the event goes through its plan, and what comes out is compared with what Logstash made of it.
package logstash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Case is one line of a file of cases.
type Case struct {
	Suite       string          `json:"suite"`
	Filter      string          `json:"filter"`
	Codec       string          `json:"codec"`
	RawOptions  json.RawMessage `json:"options"`
	Options     Object          `json:"-"`
	Input       json.RawMessage `json:"input_event"`
	Output      json.RawMessage `json:"output_event"`
	LogstashOut json.RawMessage `json:"logstash_output"` // of cases of the dissect specification
	Cancelled   bool            `json:"cancelled"`
	Yielded     json.RawMessage `json:"yielded_events"`
	NewTags     []string        `json:"new_tags"`
	ConfigError string          `json:"config_error"`
	Raised      string          `json:"raised"`
	Clock       string          `json:"year_guessed_from_clock"`
	Pivot       string          `json:"pivot_from_clock"`
	Expected    *string         `json:"expected_utc"`
	Instance    any             `json:"instance"`

	Chunks []any `json:"chunks"` // codec multiline
	Steps  []struct {
		Op     string          `json:"op"`
		Input  any             `json:"input"`
		Events json.RawMessage `json:"events"`
	} `json:"steps"`

	// Syslog's cases.
	Format  string          `json:"format"`
	Strict  bool            `json:"strict"`
	Text    string          `json:"-"`
	Want    json.RawMessage `json:"expected"`
	Mistake string          `json:"error"`
	Suspect any             `json:"suspect"`

	Line   int     `json:"-"`
	Before []*Case `json:"-"` // those that the same filter object got before
}

// Object is a JSON object in the order of its keys. Values are *Object, []any, string, json.Number, bool, nil.
type Object struct {
	Keys []string
	Vals map[string]any
}

// Get is a member, nil where there is none.
func (o *Object) Get(key string) any {
	if o == nil {
		return nil
	}
	return o.Vals[key]
}

// Has tells whether there is such a member.
func (o *Object) Has(key string) bool { _, ok := o.Vals[key]; return ok }

func parse(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return value(d)
}

func value(d *json.Decoder) (any, error) {
	tok, err := d.Token()
	if err != nil {
		return nil, err
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	var list []any
	o := &Object{Vals: map[string]any{}}
	for d.More() {
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			if _, dup := o.Vals[key.(string)]; !dup {
				o.Keys = append(o.Keys, key.(string))
			}
			o.Vals[key.(string)] = v
			continue
		}
		v, err := value(d)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if open == '{' {
		return o, nil
	}
	if list == nil {
		list = []any{}
	}
	return list, nil
}

// Read reads a file of cases.
func Read(path string) ([]*Case, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []*Case
	instances := map[any][]*Case{}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 16<<20)
	for n := 1; in.Scan(); n++ {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		line := in.Bytes()
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		c := &Case{Line: n}
		if err := d.Decode(c); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if len(c.RawOptions) > 0 {
			v, err := parse(c.RawOptions)
			if err != nil {
				return nil, err
			}
			if o, ok := v.(*Object); ok {
				c.Options = *o
			}
		}
		switch {
		case c.Format != "":
			c.Filter = "syslog"
			var in struct{ Input any }
			if err := json.Unmarshal(line, &in); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, n, err)
			}
			c.Text = string(rawBytes(in.Input))
		case c.Filter == "":
			c.Filter = c.Codec
		}
		if id, ok := c.Instance.(string); ok && c.Filter == "csv" {
			c.Before = instances[id]
			instances[id] = append(instances[id], c)
		}
		out = append(out, c)
	}
	return out, in.Err()
}

// textOf is a value as Logstash's options hold it.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(v))
}

// list is a value, or a list of them, as a list.
func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

// pairs is a hash option: an object, or a flat list of keys and values.
func pairs(v any) (out [][2]any) {
	switch v := v.(type) {
	case *Object:
		for _, k := range v.Keys {
			out = append(out, [2]any{k, v.Vals[k]})
		}
	case []any:
		for i := 0; i+1 < len(v); i += 2 {
			out = append(out, [2]any{v[i], v[i+1]})
		}
	}
	return out
}
