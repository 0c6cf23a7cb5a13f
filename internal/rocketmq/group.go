package rocketmq

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Subscription is one topic with its filter.
type Subscription struct {
	Topic   string
	Kind    string // TAG or SQL92
	Filter  string // * for all
	Version int64
}

// callTimeout bounds calls that a server answers at once.
const callTimeout = 5 * time.Second

func short(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTimeout)
}

// Heartbeat makes this client a member of the group at the broker, or keeps it one.
func (c *Client) Heartbeat(ctx context.Context, addr, id, group string, subs []Subscription) error {
	type sub struct {
		ClassFilterMode bool     `json:"classFilterMode"`
		Topic           string   `json:"topic"`
		SubString       string   `json:"subString"`
		Tags            []string `json:"tagsSet"`
		Codes           []int    `json:"codeSet"`
		Version         int64    `json:"subVersion"`
		Kind            string   `json:"expressionType"`
	}
	var list []sub
	for _, s := range subs {
		list = append(list, sub{Topic: c.Wrap(s.Topic), SubString: s.Filter, Tags: []string{}, Codes: []int{}, Version: s.Version, Kind: s.Kind})
	}
	body, err := json.Marshal(map[string]any{"clientID": id, "producerDataSet": []any{}, "consumerDataSet": []any{map[string]any{
		"groupName": c.Wrap(group), "consumeType": "CONSUME_ACTIVELY", "messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
		"subscriptionDataSet": list, "unitMode": false}}})
	if err != nil {
		return err
	}
	ctx, cancel := short(ctx)
	defer cancel()
	_, err = c.must(ctx, "join group "+group, addr, codeHeartbeat, nil, body)
	return err
}

// Leave ends the membership.
func (c *Client) Leave(ctx context.Context, addr, id, group string) error {
	ctx, cancel := short(ctx)
	defer cancel()
	_, err := c.must(ctx, "leave group "+group, addr, codeUnregister, map[string]string{"clientID": id, "consumerGroup": c.Wrap(group)}, nil)
	return err
}

// Members are the group's members that the broker knows.
func (c *Client) Members(ctx context.Context, addr, group string) ([]string, error) {
	ctx, cancel := short(ctx)
	defer cancel()
	a, err := c.must(ctx, "members of group "+group, addr, codeConsumerList, map[string]string{"consumerGroup": c.Wrap(group)}, nil)
	if err != nil {
		return nil, err
	}
	var body struct {
		IDs []string `json:"consumerIdList"`
	}
	if err := json.Unmarshal(a.Body, &body); err != nil {
		return nil, fmt.Errorf("members of group %s: %w", group, err)
	}
	return body.IDs, nil
}

func (c *Client) queueFields(q Queue) map[string]string {
	return map[string]string{"topic": q.Topic, "queueId": strconv.Itoa(q.ID), "bname": q.Broker}
}

func (c *Client) number(ctx context.Context, what, addr string, code int, fields map[string]string) (int64, error) {
	ctx, cancel := short(ctx)
	defer cancel()
	a, err := c.must(ctx, what, addr, code, fields, nil)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(a.Fields["offset"], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: answer without an offset: %w", what, err)
	}
	return n, nil
}

// Offset is the group's offset of a queue at the broker; ok is false where it has none.
func (c *Client) Offset(ctx context.Context, addr, group string, q Queue) (n int64, ok bool, err error) {
	f := c.queueFields(q)
	f["consumerGroup"], f["setZeroIfNotFound"] = c.Wrap(group), "false"
	n, err = c.number(ctx, "offset of "+q.String(), addr, codeQueryOffset, f)
	if IsCode(err, QueryNotFound) {
		return 0, false, nil
	}
	return n, err == nil && n >= 0, err
}

// SetOffset commits the group's offset of a queue at the broker; when it returns nil the broker has it.
func (c *Client) SetOffset(ctx context.Context, addr, group string, q Queue, n int64) error {
	f := c.queueFields(q)
	f["consumerGroup"], f["commitOffset"] = c.Wrap(group), strconv.FormatInt(n, 10)
	ctx, cancel := short(ctx)
	defer cancel()
	_, err := c.must(ctx, "commit the offset of "+q.String(), addr, codeUpdateOffset, f, nil)
	return err
}

// Bounds are the first offset that is there and the one that the next message gets.
func (c *Client) Bounds(ctx context.Context, addr string, q Queue) (first, next int64, err error) {
	if first, err = c.number(ctx, "first offset of "+q.String(), addr, codeMinOffset, c.queueFields(q)); err != nil {
		return
	}
	next, err = c.number(ctx, "next offset of "+q.String(), addr, codeMaxOffset, c.queueFields(q))
	return
}

// OffsetAt is the offset of the first message stored at that time or later.
func (c *Client) OffsetAt(ctx context.Context, addr string, q Queue, t time.Time) (int64, error) {
	f := c.queueFields(q)
	f["timestamp"] = strconv.FormatInt(t.UnixMilli(), 10)
	return c.number(ctx, "offset by time of "+q.String(), addr, codeSearchOffset, f)
}

// Pulled is what one pull gave.
type Pulled struct {
	Code  int    // Success: Body holds messages; PullNotFound, PullRetry: none; PullOffsetMoved: see Next
	Next  int64  // where to go on
	First int64  // the queue's first offset
	End   int64  // the offset that the next message gets
	Body  []byte // messages for Decode
}

// Pull reads from a queue at an offset. With wait above 0 the broker waits so long for the first message.
func (c *Client) Pull(ctx context.Context, addr, group string, q Queue, s *Subscription, offset int64, messages, bytes int, wait time.Duration) (Pulled, error) {
	const suspend, subscription = 2, 4
	flag := subscription
	if wait > 0 {
		flag |= suspend
	}
	f := c.queueFields(q)
	f["consumerGroup"], f["queueOffset"], f["maxMsgNums"] = c.Wrap(group), strconv.FormatInt(offset, 10), strconv.Itoa(messages)
	f["sysFlag"], f["commitOffset"], f["suspendTimeoutMillis"] = strconv.Itoa(flag), "0", strconv.FormatInt(wait.Milliseconds(), 10)
	f["subscription"], f["subVersion"], f["expressionType"] = s.Filter, strconv.FormatInt(s.Version, 10), s.Kind
	f["maxMsgBytes"] = strconv.Itoa(bytes)
	ctx, cancel := context.WithTimeout(ctx, wait+10*time.Second)
	defer cancel()
	a, err := c.call(ctx, addr, codePull, f, nil)
	if err != nil {
		return Pulled{}, fmt.Errorf("read %s at %d: %w", q, offset, err)
	}
	switch a.Code {
	case Success, PullNotFound, PullRetry, PullOffsetMoved:
	default:
		return Pulled{}, &Error{Code: a.Code, Remark: a.Remark, Addr: addr, What: "read " + q.String()}
	}
	p := Pulled{Code: a.Code, Body: a.Body}
	for _, n := range []struct {
		to   *int64
		name string
	}{{&p.Next, "nextBeginOffset"}, {&p.First, "minOffset"}, {&p.End, "maxOffset"}} {
		if *n.to, err = strconv.ParseInt(a.Fields[n.name], 10, 64); err != nil {
			return Pulled{}, fmt.Errorf("read %s: answer without %s: %w", q, n.name, err)
		}
	}
	return p, nil
}

// Boot tells a broker's runs apart, and how long this one is up.
func (c *Client) Boot(ctx context.Context, addr string) (id string, up time.Duration, err error) {
	ctx, cancel := short(ctx)
	defer cancel()
	a, err := c.must(ctx, "state of the broker", addr, codeRuntimeInfo, nil, nil)
	if err != nil {
		return "", 0, err
	}
	var body struct {
		Table struct {
			Boot string `json:"bootTimestamp"`
			Up   string `json:"runtime"`
		} `json:"table"`
	}
	if err := json.Unmarshal(a.Body, &body); err != nil {
		return "", 0, fmt.Errorf("state of the broker at %s: %w", addr, err)
	}
	// In words, so that no two clocks are compared.
	var d, h, m, s time.Duration
	if _, err := fmt.Sscanf(body.Table.Up, "[ %d days, %d hours, %d minutes, %d seconds ]", &d, &h, &m, &s); err != nil {
		return "", 0, fmt.Errorf("state of the broker at %s: it is up for %q: %w", addr, body.Table.Up, err)
	}
	return body.Table.Boot, 24*time.Hour*d + time.Hour*h + time.Minute*m + time.Second*s, nil
}
