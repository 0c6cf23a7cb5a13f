package lookup

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rsetl/rsetl/internal/letters"
	"github.com/rsetl/rsetl/record"
)

// table is what a file holds. It is not changed once it is loaded.
type table struct {
	columns [][]byte
	rows    rows
}

type row struct {
	cells  []cell
	single bool // one value, which has no name
}

type cell struct {
	column int32
	num    record.Value // numbers and booleans; Null; Missing: the text
	text   string
	items  []cell   // of an array, or the values of an object
	keys   []string // of an object
	array  bool
}

// value is the cell's value in a batch.
func (c *cell) value(b *record.Batch) record.Value {
	switch {
	case c.num.Kind() != record.Missing:
		return c.num
	case c.array || c.keys != nil:
		var vs []record.Value
		for i := range c.items {
			if !c.array {
				vs = append(vs, b.PutString(c.keys[i]))
			}
			vs = append(vs, c.items[i].value(b))
		}
		if c.array {
			return b.PutItems(record.Array, vs)
		}
		return b.PutItems(record.Map, vs)
	}
	return b.PutString(c.text)
}

func formatOf(path string) string {
	for _, f := range []string{"csv", "tsv", "json"} {
		if strings.HasSuffix(strings.ToLower(path), "."+f) {
			return f
		}
	}
	return ""
}

func (k *Config) dictionary() *table {
	t := &table{rows: newRows()}
	for _, e := range k.Dictionary {
		k.add(t, e.Key, row{single: true, cells: []cell{{text: e.Value}}})
	}
	t.rows.done()
	return t
}

func (k *Config) add(t *table, key string, r row) {
	if k.IgnoreCase {
		key = string(letters.Append(nil, []byte(key), "lowercase"))
	}
	t.rows.put(key, r)
}

// load reads a file.
func (k *Config) load(path string) (*table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(k.MaxSize)+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > int64(k.MaxSize) {
		return nil, fmt.Errorf("it has more than max_size, %s", k.MaxSize)
	}
	return k.parse(formatOf(path), bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF")))
}

func (k *Config) parse(format string, data []byte) (t *table, err error) {
	if format == "json" {
		t, err = k.json(data)
	} else {
		t, err = k.csv(format, data)
	}
	if err != nil {
		return nil, err
	}
	t.rows.done()
	return t, nil
}

func (k *Config) csv(format string, data []byte) (*table, error) {
	in := csv.NewReader(bytes.NewReader(data))
	in.Comma, _ = utf8.DecodeRuneInString(k.Separator)
	if format == "tsv" && k.Separator == "," {
		in.Comma = '\t'
	}
	in.ReuseRecord = true
	head, err := in.Read()
	if err != nil {
		if err == io.EOF {
			err = errors.New("it is empty; the first line has the columns' names")
		}
		return nil, err
	}
	head = slices.Clone(head)
	key := 0
	if k.Key != "" {
		if key = slices.Index(head, k.Key); key < 0 {
			return nil, fmt.Errorf("there is no column %q; there are: %s", k.Key, strings.Join(head, ", "))
		}
	}
	t := &table{rows: newRows()}
	var take []int
	for i, name := range head {
		t.columns = append(t.columns, []byte(name))
		if name != "" && (len(k.Fields) == 0 && i != key || slices.Contains(k.Fields, name)) {
			take = append(take, i)
		}
	}
	for _, f := range k.Fields {
		if !slices.Contains(head, f) {
			return nil, fmt.Errorf("there is no column %q; there are: %s", f, strings.Join(head, ", "))
		}
	}
	for {
		rec, err := in.Read()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		r := row{cells: make([]cell, len(take))}
		for n, i := range take {
			r.cells[n] = cell{column: int32(i), text: rec[i]}
		}
		k.add(t, rec[key], r)
	}
}

// maxDepth bounds the nesting of a JSON file's values.
const maxDepth = 64

type jsonReader struct {
	k       *Config
	d       *json.Decoder
	t       *table
	columns map[string]int32
}

func (k *Config) json(data []byte) (*table, error) {
	r := &jsonReader{k: k, d: json.NewDecoder(bytes.NewReader(data)), t: &table{rows: newRows()}, columns: map[string]int32{}}
	r.d.UseNumber()
	if err := r.file(); err != nil {
		return nil, fmt.Errorf("at byte %d: %w", r.d.InputOffset(), err)
	}
	return r.t, nil
}

func (r *jsonReader) file() error {
	tok, err := r.d.Token()
	if err != nil {
		return err
	}
	switch tok {
	case json.Delim('{'):
		for r.d.More() {
			key, err := r.d.Token()
			if err != nil {
				return err
			}
			c, err := r.value(0)
			if err != nil {
				return err
			}
			if c.keys == nil {
				if r.k.Target.Name == "" {
					return errors.New("single values need a target in the step")
				}
				r.k.add(r.t, key.(string), row{single: true, cells: []cell{c}})
				continue
			}
			r.k.add(r.t, key.(string), r.object(c, -1))
		}
	case json.Delim('['):
		if r.k.Key == "" {
			return errors.New("an array of objects: key is missing in the step, the member with the values that are looked for")
		}
		for r.d.More() {
			c, err := r.value(0)
			if err != nil {
				return err
			}
			at := slices.Index(c.keys, r.k.Key)
			if at < 0 {
				return fmt.Errorf("an element of the array is no object with a member %q", r.k.Key)
			}
			key := c.items[at].text
			if n := c.items[at].num; n.Kind() != record.Missing {
				key = plain(n)
			}
			r.k.add(r.t, key, r.object(c, at))
		}
	default:
		return errors.New("an object or an array is expected")
	}
	if _, err := r.d.Token(); err != nil {
		return err
	}
	if _, err := r.d.Token(); err != io.EOF {
		return errors.New("something follows the value")
	}
	return nil
}

func plain(v record.Value) string {
	return string(record.NewBatch(record.NewTable()).AppendPlain(nil, v))
}

// object makes a row of an object's members, but for the one at place key.
func (r *jsonReader) object(c cell, key int) (out row) {
	for i, name := range c.keys {
		if len(r.k.Fields) == 0 && i == key || len(r.k.Fields) > 0 && !slices.Contains(r.k.Fields, name) {
			continue
		}
		n, ok := r.columns[name]
		if !ok {
			n = int32(len(r.t.columns))
			r.columns[name] = n
			r.t.columns = append(r.t.columns, []byte(name))
		}
		m := c.items[i]
		m.column = n
		out.cells = append(out.cells, m)
	}
	return out
}

func (r *jsonReader) value(depth int) (c cell, err error) {
	if depth > maxDepth {
		return c, errors.New("nested too deeply")
	}
	tok, err := r.d.Token()
	if err != nil {
		return c, err
	}
	switch tok := tok.(type) {
	case json.Delim:
		c.array = tok == '['
		c.keys = []string{}
		for r.d.More() {
			if !c.array {
				key, err := r.d.Token()
				if err != nil {
					return c, err
				}
				c.keys = append(c.keys, key.(string))
			}
			e, err := r.value(depth + 1)
			if err != nil {
				return c, err
			}
			c.items = append(c.items, e)
		}
		if c.array {
			c.keys = nil
		}
		_, err = r.d.Token()
		return c, err
	case string:
		c.text = tok
	case bool:
		c.num = record.MakeBool(tok)
	case nil:
		c.num = record.MakeNull()
	case json.Number:
		if n, err := strconv.ParseInt(tok.String(), 10, 64); err == nil {
			c.num = record.MakeInt(n)
		} else if _, ok := new(big.Int).SetString(tok.String(), 10); ok {
			c.text = tok.String() // no number of 64 bits holds it
		} else {
			f, _ := tok.Float64()
			c.num = record.MakeFloat(f)
		}
	}
	return c, nil
}
