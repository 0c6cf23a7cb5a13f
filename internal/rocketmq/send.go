package rocketmq

import (
	"context"
	"strconv"
	"time"
)

// Send sends one message to a queue. When it returns nil the broker has stored it as its configuration demands.
// An answer that tells of a flush or a slave that is late is an error: the message may be there all the same.
// sysFlag tells how the body is compressed; 0: it isn't.
func (c *Client) Send(ctx context.Context, addr string, q Queue, sysFlag int32, body, props []byte) error {
	return c.send(ctx, addr, q, codeSend, strconv.Itoa(int(sysFlag)), string(props), body)
}

// SendBatch sends messages, as AppendInner makes them, to a queue: all of them or none.
func (c *Client) SendBatch(ctx context.Context, addr string, q Queue, batch []byte) error {
	return c.send(ctx, addr, q, codeSendBatch, "0", "", batch)
}

func (c *Client) send(ctx context.Context, addr string, q Queue, code int, sysFlag, props string, body []byte) error {
	f := map[string]string{"a": "rsetl", "b": q.Topic, "c": "TBW102", "d": "4", "e": strconv.Itoa(q.ID), "f": sysFlag,
		"g": strconv.FormatInt(time.Now().UnixMilli(), 10), "h": "0", "i": props, "j": "0", "k": "false", "l": "0",
		"m": strconv.FormatBool(code == codeSendBatch), "n": q.Broker}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	_, err := c.must(ctx, "send to "+q.String(), addr, code, f, body)
	return err
}

// AppendProp appends a property. Both must be free of the bytes 1 and 2.
func AppendProp(dst []byte, name string, value []byte) []byte {
	dst = append(append(dst, name...), 1)
	return append(append(dst, value...), 2)
}
