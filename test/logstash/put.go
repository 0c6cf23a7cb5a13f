package logstash

import (
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/rsetl/rsetl/record"
)

// setFields gives record i the members of an object; nested ones as dotted paths.
func setFields(b *record.Batch, i int, prefix string, o *Object) {
	for _, k := range o.Keys {
		v := o.Vals[k]
		if sub, ok := v.(*Object); ok && !special(sub) && len(sub.Keys) > 0 {
			setFields(b, i, prefix+k+".", sub)
			continue
		}
		b.SetNamed(i, b.PutString(prefix+k), recordValue(b, v))
	}
}

func recordValue(b *record.Batch, v any) record.Value {
	switch v := v.(type) {
	case nil:
		return record.MakeNull()
	case bool:
		return record.MakeBool(v)
	case string:
		return b.PutString(v)
	case json.Number:
		s := v.String()
		if !strings.ContainsAny(s, ".eE") {
			x, _ := new(big.Int).SetString(s, 10)
			if x.IsInt64() {
				return record.MakeInt(x.Int64())
			}
			return b.BigDecimal(x, 0)
		}
		f, _ := strconv.ParseFloat(s, 64)
		return record.MakeFloat(f)
	case []any:
		var vs []record.Value
		for _, e := range v {
			vs = append(vs, recordValue(b, e))
		}
		return b.PutItems(record.Array, vs)
	case *Object:
		if t := v.Get("$ts"); t != nil {
			if at, err := time.Parse(time.RFC3339Nano, textOf(t)); err == nil {
				return record.MakeTime(at.Unix(), uint32(at.Nanosecond()), 3)
			}
		}
		if d := v.Get("$bigdecimal"); d != nil {
			f, _ := strconv.ParseFloat(textOf(d), 64)
			return record.MakeFloat(f)
		}
		if t := v.Get("$b64"); t != nil {
			raw, _ := base64.StdEncoding.DecodeString(textOf(t))
			return b.PutBytes(raw)
		}
		var vs []record.Value
		for _, k := range v.Keys {
			vs = append(vs, b.PutString(k), recordValue(b, v.Vals[k]))
		}
		return b.PutItems(record.Map, vs)
	}
	return record.Value{}
}
