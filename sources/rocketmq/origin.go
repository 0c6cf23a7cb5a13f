package rocketmq

import (
	"bytes"
	"context"
	"strconv"

	"github.com/rsetl/rsetl/internal/rocketmq"
)

// origins are the last messages of rsetl's sinks in a queue, by their splits: at most 2*originsKept of them, the least
// recently seen forgotten first.
type origins struct {
	young, old map[string]origin
}

type origin struct {
	epoch, offset int64
	index         int32
}

const originsKept = 2048

// repeated tells whether a message of that origin isn't behind the last one of its split, and notes it.
func (o *origins) repeated(p []byte) bool {
	if len(p) == 0 {
		return false
	}
	key, at, ok := parseOrigin(p)
	if !ok {
		return false
	}
	last, known := o.young[string(key)]
	if !known {
		last, known = o.old[string(key)]
	}
	if known && at.epoch == last.epoch && (at.offset < last.offset || at.offset == last.offset && at.index <= last.index) {
		return true
	}
	if known && at.epoch < last.epoch {
		return false // a late writer of before a reset: not a repeat of what is noted
	}
	if o.young == nil || len(o.young) >= originsKept {
		if _, there := o.young[string(key)]; !there {
			o.old, o.young = o.young, map[string]origin{}
		}
	}
	o.young[string(key)] = at
	return false
}

func parseOrigin(p []byte) (key []byte, at origin, ok bool) {
	var n [3]int64
	for i := 2; i >= 0; i-- {
		cut := bytes.LastIndexByte(p, '|')
		if cut < 0 {
			return nil, at, false
		}
		v, err := strconv.ParseInt(string(p[cut+1:]), 10, 64)
		if err != nil {
			return nil, at, false
		}
		n[i], p = v, p[:cut]
	}
	return p, origin{n[0], n[1], int32(n[2])}, true
}

// lookBack is how many messages before the position are looked at for their origins.
const lookBack = 256

// recall notes the origins of messages before the position, so that repeats behind it are known as such after a restart
// and on any instance.
func (s *Source) recall(ctx context.Context, q *queue, first, start int64) error {
	q.origin = origins{}
	for at := max(first, start-lookBack); at < start; {
		var p rocketmq.Pulled
		err := s.retry(ctx, q, func(addr string) (err error) {
			p, err = s.client.Pull(ctx, addr, s.cfg.Group, q.Queue, &q.topic.sub, at, int(min(start-at, pullMessages)), 256<<10, 0)
			return err
		})
		if err != nil {
			return err
		}
		if p.Next <= at || p.Code == rocketmq.PullOffsetMoved {
			return nil
		}
		for body := p.Body; p.Code == rocketmq.Success && len(body) > 0; {
			var m rocketmq.Message
			if body, err = rocketmq.Next(body, &m); err != nil {
				break
			}
			if m.Offset < start {
				q.origin.repeated(m.Prop(rocketmq.OriginProp))
			}
		}
		at = p.Next
	}
	return nil
}
