package record

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
)

// everything makes a record with a value of each kind, and the table it is of.
func everything() (*Batch, int) {
	t := NewTable()
	for _, n := range []string{"null", "absent", "yes", "int", "float", "small", "text", "@path"} {
		t.Slot(n)
	}
	b := NewBatch(t)
	i := b.Add(Position{7, 1}, Value{})
	set := func(name string, v Value) { b.SetNamed(i, b.PutString(name), v) }
	set("null", MakeNull())
	set("yes", MakeBool(true))
	set("int", MakeInt(math.MinInt64))
	set("float", MakeFloat(1.5))
	set("small", MakeDecimal(-1234, 2))
	set("text", b.PutString("é\n"))
	set("@path", b.PutString("/a"))
	big, _ := new(big.Int).SetString("-123456789012345678901234567890", 10)
	set("big", b.BigDecimal(big, 5))
	set("bytes", b.PutString("\xff\x00").As(Bytes))
	set("date", MakeDate(-1))
	set("clock", MakeClock(3_600_000_000_001, 9))
	set("time", MakeTime(-1, 500_000_000, 3))
	set("months", MakeMonths(14))
	set("duration", MakeDuration(-1))
	inner := b.PutItems(Array, []Value{MakeInt(2), {}, MakeNull()})
	m := b.PutItems(Map, []Value{b.PutString("k"), inner})
	set("array", b.PutItems(Array, []Value{MakeInt(1), m, b.PutItems(Array, nil)}))
	return b, i
}

const everythingJSON = `{"null":null,"yes":true,"int":-9223372036854775808,"float":1.5,"small":-12.34,"text":"é\n",` +
	`"big":-1234567890123456789012345.67890,"bytes":"/wA=","date":"1969-12-31","clock":"01:00:00.000000001",` +
	`"time":"1969-12-31T23:59:59.500Z","months":"P1Y2M","duration":"-PT0.000000001S","array":[1,{"k":[2,null,null]},[]]}`

func TestCodec(t *testing.T) {
	b, i := everything()
	if got := string(NewEncoder(b.Table, nil, true).Append(nil, b, i)); got != everythingJSON {
		t.Fatalf("the test's record is\n%s, want\n%s", got, everythingJSON)
	}
	data := AppendRecord(nil, b, i)
	for what, slots := range map[string][]string{"same table": b.Table.Names(), "empty table": nil, "another": {"array", "new", "@path"}} {
		t.Run(what, func(t *testing.T) {
			table := NewTable()
			for _, s := range slots {
				table.Slot(s)
			}
			c := NewBatch(table)
			c.PutString("something before")
			c.Add(Position{}, Value{})
			k, err := DecodeRecord(c, data, Position{9, 2})
			if err != nil || k != 1 || c.Pos(k) != (Position{9, 2}) {
				t.Fatal(k, err)
			}
			if got := c.Lookup(k, "@path"); string(c.Bytes(got)) != "/a" {
				t.Error("metadata is lost")
			}
			if got := c.Lookup(k, "absent"); got.Kind() != Missing {
				t.Error("a missing field came back")
			}
			in, out := b.jsonByName(i), c.jsonByName(k)
			if len(in) != len(out) {
				t.Errorf("%d fields, want %d", len(out), len(in))
			}
			for n := range in {
				if in[n] != out[n] {
					t.Errorf("%s: %s, want %s", n, out[n], in[n])
				}
			}
		})
	}
}

func (b *Batch) jsonByName(i int) map[string]string {
	m := map[string]string{}
	for s, n := range b.Table.Names() {
		if v := b.Get(i, s); v.Kind() != Missing {
			m[n] = v.Kind().String() + string(b.AppendJSON(nil, v))
		}
	}
	for n, v := range b.Overflow(i) {
		m[string(b.Bytes(n))] = v.Kind().String() + string(b.AppendJSON(nil, v))
	}
	return m
}

// What is in an outbox must stay readable: this is version 1 for ever.
const codecGolden = "010f046e756c6c0103796573020103696e7403ffffffffffffffffff0105666c6f617404000000000000f83f05736d616c6c0502a31304746578740603c3a90a" +
	"05407061746806022f6103626967058580040dfe7116f0093c8c1f11b1c0f52e0562797465730702ff000464617465080105636c6f636b09098280c58bc6d101" +
	"0474696d650a0380cab5ee0101066d6f6e7468730b1c086475726174696f6e0c010561727261790d0303020e0106016b0d03030401010d00"

func TestCodecGolden(t *testing.T) {
	b, i := everything()
	got := fmt.Sprintf("%x", AppendRecord(nil, b, i))
	if got != codecGolden {
		t.Errorf("the format changed:\n got %s\nwant %s", got, codecGolden)
	}
}

func TestDecodeRecordRefuses(t *testing.T) {
	good, i := everything()
	data := AppendRecord(nil, good, i)
	b := NewBatch(NewTable())
	for n := range len(data) {
		if _, err := DecodeRecord(b, data[:n], Position{}); !errors.Is(err, ErrCodec) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	if _, err := DecodeRecord(b, append(bytes.Clone(data), 0), Position{}); !errors.Is(err, ErrCodec) {
		t.Error("a byte too much is taken")
	}
	data[0]++
	if _, err := DecodeRecord(b, data, Position{}); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Error(err)
	}
	deep := append([]byte{1, 1, 1, 'a'}, bytes.Repeat([]byte{byte(Array), 1}, 1<<20)...)
	if _, err := DecodeRecord(b, deep, Position{}); !errors.Is(err, ErrCodec) {
		t.Error("a million levels are taken")
	}
	if b.Len() != 0 {
		t.Errorf("%d records after failures", b.Len())
	}
}

func FuzzDecodeRecord(f *testing.F) {
	b, i := everything()
	f.Add(AppendRecord(nil, b, i))
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		table := NewTable()
		table.Slot("int")
		b := NewBatch(table)
		i, err := DecodeRecord(b, data, Position{})
		if err != nil {
			if b.Len() != 0 {
				t.Fatal("a record in spite of the error")
			}
			return
		}
		NewEncoder(table, nil, true).Append(nil, b, i)
		again := AppendRecord(nil, b, i)
		c := NewBatch(table)
		k, err := DecodeRecord(c, again, Position{})
		if err != nil {
			t.Fatalf("what was decoded can't be encoded: %v", err)
		}
		if third := AppendRecord(nil, c, k); !bytes.Equal(again, third) {
			t.Fatalf("%x became %x", again, third)
		}
	})
}
