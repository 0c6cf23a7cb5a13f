package rocketmq

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/record"
)

type scratch struct {
	env   *expr.Env
	text  []byte
	props []byte
	body  []byte
}

type prop struct {
	name  string
	value *expr.TemplateProgram
}

// maxProps is what all of a message's properties may have, in bytes: 32 KiB less what the broker adds.
const maxProps = 32<<10 - 1 - 512

var errNull = errors.New("a field in the template is missing or NULL")

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// Encode appends the row: the hash that chooses the queue (4 bytes), the topic's length (2 bytes) and the topic where it is not
// the same for all, and the message as batches hold it.
func (s *Sink) Encode(dst []byte, b *record.Batch, i int) ([]byte, error) {
	sc := s.scratch.Get().(*scratch)
	sc.env.B = b
	dst, err := s.encode(dst, b, i, sc)
	sc.env.B = nil
	s.scratch.Put(sc)
	return dst, err
}

func (s *Sink) encode(dst []byte, b *record.Batch, i int, sc *scratch) ([]byte, error) {
	start := len(dst)
	var ok bool
	if s.shard != nil {
		if sc.text, ok = s.shard.Append(sc.text[:0], sc.env, i); !ok {
			return dst, fmt.Errorf("sharding_key: %w", errNull)
		}
	} else {
		sc.text = append(sc.text[:0], b.Split.ID...)
	}
	dst = binary.BigEndian.AppendUint32(dst, hash(sc.text))
	props := append(sc.props[:0], s.fixed...)
	defer func() { sc.props = props[:0] }()
	if s.shard != nil {
		if props, ok = s.property(props, "__SHARDINGKEY", sc.text); !ok {
			return dst[:start], fmt.Errorf("sharding_key: %w", errControl)
		}
	}
	if s.constTopic != nil {
		dst = binary.BigEndian.AppendUint16(dst, 0)
	} else {
		if sc.text, ok = s.topic.Append(sc.text[:0], sc.env, i); !ok {
			return dst[:start], fmt.Errorf("topic: %w", errNull)
		}
		if len(sc.text) == 0 || len(sc.text) > 127 {
			return dst[:start], fmt.Errorf("topic: a name of %d bytes; RocketMQ takes 1 to 127", len(sc.text))
		}
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(sc.text)))
		dst = append(dst, sc.text...)
	}
	for _, p := range [...]prop{{"KEYS", s.key}, {"TAGS", s.tag}} {
		if p.value == nil {
			continue
		}
		if props, ok = s.add(props, p, sc, i); !ok {
			return dst[:start], fmt.Errorf("%s: %w", map[string]string{"KEYS": "key", "TAGS": "tag"}[p.name], errControl)
		}
	}
	for _, p := range s.props {
		if props, ok = s.add(props, p, sc, i); !ok {
			return dst[:start], fmt.Errorf("properties.%s: %w", p.name, errControl)
		}
	}
	at := b.Pos(i)
	t := append(sc.text[:0], s.origin...)
	t = append(append(t, b.Split.ID...), '|')
	t = append(appendInt(t, b.Split.Epoch), '|')
	t = append(appendInt(t, at.Offset), '|')
	sc.text = appendInt(t, int64(at.Index))
	props, _ = s.property(props, rocketmq.OriginProp, sc.text)
	if len(props) > maxProps {
		return dst[:start], fmt.Errorf("key, tag and properties have %d bytes; RocketMQ takes %d", len(props), maxProps)
	}
	if s.body != nil {
		if sc.body, ok = s.body.Append(sc.body[:0], sc.env, i); !ok {
			return dst[:start], fmt.Errorf("body: %w", errNull)
		}
	} else {
		sc.body = s.json.Append(sc.body[:0], b, i)
	}
	if len(sc.body) == 0 {
		return dst[:start], errors.New("the body is empty; RocketMQ takes no such message")
	}
	if n := len(sc.body) + len(props); n > int(s.cfg.MaxMessage) {
		return dst[:start], fmt.Errorf("the message has %d bytes; max_message is %d", n, s.cfg.MaxMessage)
	}
	return rocketmq.AppendInner(dst, 0, sc.body, props), nil
}

// hash chooses a queue, the same in every process: FNV-1a, mixed so that its high bits are good.
func hash(p []byte) uint32 {
	h := uint64(14695981039346656037)
	for _, c := range p {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return uint32((h ^ h>>33) >> 16)
}

var errControl = errors.New("the value holds the byte 1 or 2, which RocketMQ's properties can't")

// add appends a property; one whose fields are missing is left out.
func (s *Sink) add(props []byte, p prop, sc *scratch, i int) ([]byte, bool) {
	var ok bool
	if sc.text, ok = p.value.Append(sc.text[:0], sc.env, i); !ok || len(sc.text) == 0 {
		return props, true
	}
	return s.property(props, p.name, sc.text)
}

func (s *Sink) property(props []byte, name string, value []byte) ([]byte, bool) {
	if bytes.ContainsAny(value, "\x01\x02") {
		return props, false
	}
	return rocketmq.AppendProp(props, name, value), true
}

// row is an encoded row's parts.
type row struct {
	hash    uint32
	topic   []byte
	message []byte
}

func (s *Sink) decode(p []byte) row {
	n := int(binary.BigEndian.Uint16(p[4:]))
	r := row{hash: binary.BigEndian.Uint32(p), topic: p[6 : 6+n], message: p[6+n:]}
	if n == 0 {
		r.topic = s.constTopic
	}
	return r
}

// Describe shows a row in a dead letter.
func (s *Sink) Describe(dst, p []byte) []byte {
	r := s.decode(p)
	var m rocketmq.Message
	rocketmq.NextInner(r.message, &m)
	if s.json != nil {
		return append(dst, m.Body...)
	}
	dst = append(dst, `{"topic":`...)
	dst = record.AppendJSONString(dst, r.topic)
	for _, p := range []struct{ name, prop string }{{"key", "KEYS"}, {"tag", "TAGS"}} {
		if v := m.Prop(p.prop); v != nil {
			dst = append(dst, `,"`+p.name+`":`...)
			dst = record.AppendJSONString(dst, v)
		}
	}
	dst = append(dst, `,"body":`...)
	return append(record.AppendJSONString(dst, m.Body), '}')
}
