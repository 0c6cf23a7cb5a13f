package elasticsearch

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
)

// scratch is what one Encode uses; it remembers the split of the record before.
type scratch struct {
	env   *expr.Env
	text  []byte
	split *record.Split
	id    []byte // the beginning of the split's ids
	// outbox: the split's numbers begin anew with the state, so an id holds a checksum of the document too. What is sent
	// again of an outbox is the same bytes.
	outbox bool

	quarter int64 // the quarter of an hour, since 1970, that index is of
	index   []byte
}

// quarter is the length in seconds of what all zones' days are made of.
const quarter = 15 * 60

// byDay tells whether a template's text depends on nothing but the day of the event time.
func byDay(src string) bool {
	for {
		i := strings.Index(src, "%{")
		if i < 0 {
			return true
		}
		pattern, rest, ok := strings.Cut(src[i+2:], "}")
		if !ok || !strings.HasPrefix(pattern, "+") || strings.Trim(pattern[1:], "yYMdDeEwWuxGqQL.-_/") != "" {
			return false
		}
		src = rest
	}
}

// indexName appends the record's index as a JSON string.
func (s *Sink) indexName(dst []byte, b *record.Batch, i int, sc *scratch) ([]byte, error) {
	if s.daySlot < 0 {
		return sc.template(dst, s.index, i, "index")
	}
	v := b.Get(i, s.daySlot)
	if v.Kind() != record.Time || v.Sec() < 0 {
		return sc.template(dst, s.index, i, "index")
	}
	q := v.Sec() / quarter
	if sc.index != nil && q == sc.quarter {
		return append(dst, sc.index...), nil
	}
	n := len(dst)
	dst, err := sc.template(dst, s.index, i, "index")
	if err == nil {
		sc.quarter, sc.index = q, append(sc.index[:0], dst[n:]...)
	}
	return dst, err
}

// maxID is the longest id that Elasticsearch takes; a longer one makes it refuse the whole request.
const maxID = 512

var errNull = errors.New("a field in the template is missing or NULL")

// Encode appends the record as its lines in a bulk request.
func (s *Sink) Encode(dst []byte, b *record.Batch, i int) ([]byte, error) {
	sc := s.scratch.Get().(*scratch)
	sc.env.B = b
	dst, err := s.encode(dst, b, i, sc)
	sc.env.B = nil
	s.scratch.Put(sc)
	return dst, err
}

func (s *Sink) encode(dst []byte, b *record.Batch, i int, sc *scratch) ([]byte, error) {
	dst = append(append(append(dst, `{"`...), s.op...), `":{"_index":`...)
	var err error
	if dst, err = s.indexName(dst, b, i, sc); err != nil {
		return dst, err
	}
	dst = append(dst, `,"_id":`...)
	sum := 0 // where the document's checksum goes
	if s.id == nil {
		dst = append(append(append(dst, '"'), s.prefix(b.Split, sc)...), '-')
		pos := b.Pos(i)
		dst = strconv.AppendInt(dst, pos.Offset, 36)
		if pos.Index != 0 {
			dst = strconv.AppendInt(append(dst, '.'), int64(pos.Index), 36)
		}
		if sc.outbox {
			dst = append(dst, '-')
			sum = len(dst)
			dst = append(dst, "0123456789abcdef"...)
		}
		dst = append(dst, '"')
	} else {
		if dst, err = sc.template(dst, s.id, i, "id"); err != nil {
			return dst, err
		}
		if len(sc.text) > maxID {
			return dst, fmt.Errorf("id: %d bytes, more than the %d that Elasticsearch takes", len(sc.text), maxID)
		}
	}
	if s.routing != nil {
		if dst, err = sc.template(append(dst, `,"routing":`...), s.routing, i, "routing"); err != nil {
			return dst, err
		}
	}
	if s.ingest != nil {
		if dst, err = sc.template(append(dst, `,"pipeline":`...), s.ingest, i, "pipeline"); err != nil {
			return dst, err
		}
	}
	if s.version != nil {
		v := s.version.Eval(sc.env, i)
		if v.Kind() != record.Int || v.Int() < 0 {
			return dst, fmt.Errorf("version: want an integer of at least 0, not %s", v.Kind())
		}
		dst = strconv.AppendInt(append(dst, `,"version_type":"external_gte","version":`...), v.Int(), 10)
	}
	dst = append(dst, "}}\n"...)
	if s.op == "update" {
		dst = s.enc.Append(append(dst, `{"doc":`...), b, i)
		return append(dst, `,"doc_as_upsert":true}`+"\n"...), nil
	}
	doc := len(dst)
	dst = s.enc.Append(dst, b, i)
	if sum > 0 {
		h := sha256.Sum256(dst[doc:])
		hex.Encode(dst[sum:], h[:8])
	}
	return append(dst, '\n'), nil
}

// template appends a template's text as a JSON string; the text alone is in sc.text then.
func (sc *scratch) template(dst []byte, p *expr.TemplateProgram, i int, what string) ([]byte, error) {
	var ok bool
	if sc.text, ok = p.Append(sc.text[:0], sc.env, i); !ok {
		return dst, fmt.Errorf("%s: %w", what, errNull)
	}
	if len(sc.text) == 0 {
		return dst, fmt.Errorf("%s: it is empty", what)
	}
	return record.AppendJSONString(dst, sc.text), nil
}

// prefix is what the ids of a split's documents begin with: 128 bits of a hash, as text.
func (s *Sink) prefix(split *record.Split, sc *scratch) []byte {
	if sc.split == split && sc.id != nil {
		return sc.id
	}
	id := ""
	var epoch int64
	if split != nil {
		id, epoch = split.ID, split.Epoch
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", s.pipeline, s.name, id, epoch))
	sc.outbox = strings.HasPrefix(id, "outbox:")
	sc.split, sc.id = split, base64.RawURLEncoding.AppendEncode(sc.id[:0], h[:16])
	return sc.id
}

// Describe shows the document of an encoded row.
func (s *Sink) Describe(dst, row []byte) []byte {
	if i := bytes.IndexByte(row, '\n'); i >= 0 {
		row = row[i+1:]
	}
	row = bytes.TrimSuffix(row, []byte("\n"))
	if s.op == "update" {
		row = bytes.TrimSuffix(bytes.TrimPrefix(row, []byte(`{"doc":`)), []byte(`,"doc_as_upsert":true}`))
	}
	return append(dst, row...)
}
