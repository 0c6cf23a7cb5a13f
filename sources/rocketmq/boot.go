package rocketmq

import (
	"context"
	"time"

	"github.com/rsetl/rsetl/internal/rocketmq"
)

// boot is a broker's run as a connection found it. A broker that is killed forgets the offsets of its last seconds.
type boot struct {
	id        string    // the same as long as the broker runs; where it doesn't tell, as long as the connection does
	known     bool      // it has told
	began     time.Time // by this host's clock, where known
	connected time.Time
}

// fresh is how long after its start a broker's offsets count as forgotten where they are behind. In that time a queue's
// members, or those that take it, tell it better ones.
const fresh = time.Minute

// startTime is how long a broker may answer with system errors, since it has no figures yet; it is about a second, more where the machine
// is busy. Until it has told, an offset that it forgot would be taken for a reset.
const startTime = fresh

// boot asks the broker once for each connection. It is to be called after the offset was asked for, so that an offset that
// was forgotten never comes with the run before.
func (s *Source) boot(ctx context.Context, addr string) (boot, error) {
	connected := s.client.Connected(addr)
	s.mu.Lock()
	b, ok := s.boots[addr]
	s.mu.Unlock()
	if ok && b.connected.Equal(connected) {
		return b, nil
	}
	id, up, err := s.client.Boot(ctx, addr)
	if b = (boot{id: id, known: err == nil, began: time.Now().Add(-up), connected: s.client.Connected(addr)}); err != nil {
		starting := rocketmq.IsCode(err, rocketmq.SystemError) && time.Since(b.connected) < startTime
		if starting || !rocketmq.IsCode(err, rocketmq.SystemError, rocketmq.NoPermission, rocketmq.Unsupported) {
			return b, err
		}
		b.id = "connection of " + b.connected.String() // these keys may not ask
	}
	if !connected.IsZero() && b.connected.Equal(connected) { // else it may be the answer of another run
		s.mu.Lock()
		s.boots[addr] = b
		s.mu.Unlock()
	}
	return b, nil
}

// may tells whether the broker may have forgotten an offset that was last seen in the run before.
func (b boot) may(before string) bool {
	return b.known && b.id != before && time.Since(b.began) < fresh
}
