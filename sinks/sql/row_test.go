package sql

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/record"
)

// FuzzRow makes a record of the input, encodes it and compares what comes out with the record.
func FuzzRow(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14})
	f.Add([]byte("\x06\x05hello\x06\x00\x07\x03\x00\xff\x00\x0d\x02\x06\x01a\x03"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table := record.NewTable()
		table.Slot("a")
		table.Slot("b")
		cols := []Column{{Name: "a", slot: 0}, {Name: "b", slot: 1}}
		b := record.NewBatch(table)
		g := gen{b: b, p: data}
		i := b.Add(record.Position{}, record.Value{})
		var names []string
		var values []record.Value
		for n := 0; len(g.p) > 0 && n < 200; n++ {
			v := g.value(0)
			if n < 2 {
				b.Set(i, n, v)
				continue
			}
			name := b.PutBytes(append([]byte{'x', byte(n)}, g.text()...))
			b.AddOverflow(i, name, v)
			if v.Kind() != record.Missing {
				names = append(names, string(b.Bytes(name)))
				values = append(values, v)
			}
		}
		values = append([]record.Value{b.Get(i, 0), b.Get(i, 1)}, values...)
		s := New(&Options{}, cols, true, nil)
		row, err := s.Encode([]byte("before"), b, i)
		if err != nil {
			t.Fatal(err)
		}
		row = row[len("before"):]
		var r Row
		r.Cells = append(r.Cells, Cell{Kind: record.Int, Int: 99}) // of the row before
		r.Decode(row, 2)
		if len(r.Cells) != len(values) || len(r.Names) != len(names) {
			t.Fatalf("%d cells and %d names, want %d and %d", len(r.Cells), len(r.Names), len(values), len(names))
		}
		for k, name := range names {
			if string(r.Names[k]) != name {
				t.Errorf("name %d is %q, want %q", k, r.Names[k], name)
			}
		}
		for k, v := range values {
			c := r.Cells[k]
			if c.Kind != v.Kind() || c.IsNull() != v.IsNull() {
				t.Fatalf("cell %d is %v, want %v", k, c.Kind, v.Kind())
			}
			switch v.Kind() {
			case record.Missing, record.Null:
				if c.Text != nil {
					t.Error("NULL with a text")
				}
			case record.Bool, record.Int:
				if c.Int != v.Int() {
					t.Errorf("%d, want %d", c.Int, v.Int())
				}
			case record.Float:
				if math.Float64bits(c.F) != math.Float64bits(v.Float()) {
					t.Errorf("%v, want %v", c.F, v.Float())
				}
			case record.String, record.Bytes:
				if string(c.Text) != string(b.Bytes(v)) || c.Text == nil {
					t.Errorf("%q, want %q", c.Text, b.Bytes(v))
				}
			default:
				if want := b.AppendPlain(nil, v); string(c.Text) != string(want) || c.Text == nil {
					t.Errorf("%q, want %q", c.Text, want)
				}
			}
		}
		if d := s.Describe(nil, row); !json.Valid(d) {
			t.Errorf("described as %s", d)
		}
	})
}

// gen makes values of bytes.
type gen struct {
	b *record.Batch
	p []byte
}

func (g *gen) byte() byte {
	if len(g.p) == 0 {
		return 0
	}
	c := g.p[0]
	g.p = g.p[1:]
	return c
}

func (g *gen) text() []byte {
	n := min(int(g.byte()), len(g.p))
	t := g.p[:n]
	g.p = g.p[n:]
	return t
}

func (g *gen) int() int64 {
	x := int64(0)
	for range g.byte() % 9 {
		x = x<<8 | int64(g.byte())
	}
	return x
}

func (g *gen) value(depth int) record.Value {
	switch k := record.Kind(g.byte() % 15); k {
	case record.Null:
		return record.MakeNull()
	case record.Bool:
		return record.MakeBool(g.byte()&1 == 1)
	case record.Int:
		return record.MakeInt(g.int())
	case record.Float:
		return record.MakeFloat(math.Float64frombits(uint64(g.int())))
	case record.Decimal:
		if g.byte()&1 == 1 {
			return g.b.BigDecimal(new(big.Int).SetBytes(g.text()), int(g.byte()))
		}
		return record.MakeDecimal(g.int(), int(g.byte()))
	case record.String, record.Bytes:
		return g.b.PutBytes(g.text()).As(k)
	case record.Date:
		return record.MakeDate(g.int() % 1_000_000)
	case record.Clock:
		return record.MakeClock(int64(uint64(g.int())%86_400_000_000_000), int(g.byte()%10))
	case record.Time:
		return record.MakeTime(g.int()%100_000_000_000, uint32(uint64(g.int())%1_000_000_000), int(g.byte()%10))
	case record.Months:
		return record.MakeMonths(g.int() % 1_000_000)
	case record.Duration:
		return record.MakeDuration(g.int())
	case record.Array, record.Map:
		var vs []record.Value
		for range g.byte() % 4 {
			if depth > 3 {
				break
			}
			if k == record.Map {
				vs = append(vs, g.b.PutBytes(g.text()))
			}
			vs = append(vs, g.value(depth+1))
		}
		return g.b.PutItems(k, vs)
	}
	return record.Value{}
}

// plainText is a dialect whose literals are the values' plain texts.
type plainText struct{ Dialect }

func (plainText) AppendLiteral(dst []byte, b *record.Batch, v record.Value) ([]byte, bool) {
	return b.AppendPlain(dst, v), v.Kind() != record.Float
}

func (plainText) Plain(*Cell) {}

// FuzzLiterals is FuzzRow for a dialect with literals.
func FuzzLiterals(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x06\x05hello\x06\x00\x07\x03\x00\xff\x00\x0d\x02\x06\x01a\x03"))
	f.Add([]byte("\x06\x05hello\x03\x01\x07"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table := record.NewTable()
		cols := []Column{{Name: "a", slot: table.Slot("a")}, {Name: "b", slot: table.Slot("b")}, {Name: "c", slot: table.Slot("c")}}
		b := record.NewBatch(table)
		g := gen{b: b, p: data}
		i := b.Add(record.Position{}, record.Value{})
		var values []record.Value
		long := g.byte()&7 == 1
		for n := 0; n < 3 || len(g.p) > 0 && n < 50; n++ {
			v := g.value(0)
			if n == 1 && long {
				v = b.PutString(strings.Repeat("x", maxShort-2+int(g.byte()&3)))
			}
			if n < 3 {
				b.Set(i, n, v)
				values = append(values, v)
			} else if v.Kind() != record.Missing {
				b.AddOverflow(i, b.PutBytes([]byte{'x', byte(n)}), v)
				values = append(values, v)
			}
		}
		s := New(&Options{}, cols, true, plainText{})
		row, err := s.Encode([]byte("before"), b, i)
		if err != nil {
			t.Fatal(err)
		}
		r := s.NewRow()
		r.Decode(row[len("before"):], 3)
		var plain []byte
		if r.Plain != nil {
			for k := range 3 {
				if got := r.Plain.Kind(k); got != values[k].Kind() {
					t.Errorf("kind %d is %v, want %v", k, got, values[k].Kind())
				}
			}
			plain = r.Plain.Text
			r.Expand()
		}
		if len(r.Cells) != len(values) || len(r.Names) != len(values)-3 {
			t.Fatalf("%d cells and %d names of %d values", len(r.Cells), len(r.Names), len(values))
		}
		var joined []byte
		for k, v := range values {
			c := r.Cells[k]
			if k > 0 {
				joined = append(joined, ',')
			}
			if v.IsNull() {
				joined = append(joined, "NULL"...)
			}
			joined = b.AppendPlain(joined, v)
			if c.Kind != v.Kind() || string(c.Text) != string(b.AppendPlain(nil, v)) {
				t.Errorf("cell %d is %v %q, want %v %q", k, c.Kind, c.Text, v.Kind(), b.AppendPlain(nil, v))
			}
		}
		if plain != nil && string(plain) != string(joined) {
			t.Errorf("plain %q, want %q", plain, joined)
		}
	})
}
