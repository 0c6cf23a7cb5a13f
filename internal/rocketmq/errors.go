package rocketmq

import (
	"context"
	"errors"
	"sync/atomic"
)

// failures counts calls that gave nothing.
type failures struct{ connect, lost, timeout, refused atomic.Int64 }

// usual are the codes of answers that are no failure.
var usual = []int{Success, PullNotFound, PullRetry, PullOffsetMoved, QueryNotFound}

// note counts an error as of that kind, or as a timeout. A call that its caller has ended, or Close, is no failure.
func (f *failures) note(ctx context.Context, kind *atomic.Int64, err error) {
	switch {
	case ctx.Err() == context.DeadlineExceeded:
		f.timeout.Add(1)
	case ctx.Err() == nil && !errors.Is(err, errClosed):
		kind.Add(1)
	}
}

// Errors counts the calls that have failed: connect (no connection could be made), lost (it broke before the answer), timeout (no answer in
// time), refused (the answer is no success).
func (c *Client) Errors() map[string]int64 {
	f := &c.fails
	return map[string]int64{"connect": f.connect.Load(), "lost": f.lost.Load(), "timeout": f.timeout.Load(), "refused": f.refused.Load()}
}
