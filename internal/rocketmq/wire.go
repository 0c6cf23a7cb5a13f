// Package rocketmq speaks RocketMQ's remoting protocol, as brokers and name servers of 4.x and 5.x do: what the
// source and the sink need of it. Every call ends with its context, every answer is checked, no goroutine outlives
// Close, and a broken connection fails what waits for it at once.
package rocketmq

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Codes of requests.
const (
	codePull            = 11
	codeQueryOffset     = 14
	codeUpdateOffset    = 15
	codeCreateTopic     = 17
	codeRuntimeInfo     = 28
	codeSearchOffset    = 29
	codeMaxOffset       = 30
	codeMinOffset       = 31
	codeHeartbeat       = 34
	codeUnregister      = 35
	codeConsumerList    = 38
	codeMembersChanged  = 40
	codeRoute           = 105
	codeSend            = 310
	codeSendBatch       = 320
	codeResetOffsetPush = 220
	codeCreateUser      = 3001
	codeCreateACL       = 3006
)

// Codes of answers.
const (
	Success          = 0
	SystemError      = 1
	SystemBusy       = 2
	Unsupported      = 3
	FlushDiskTimeout = 10
	SlaveMissing     = 11
	FlushSlaveLate   = 12
	MessageIllegal   = 13
	NoPermission     = 16
	TopicMissing     = 17
	PullNotFound     = 19
	PullRetry        = 20
	PullOffsetMoved  = 21
	QueryNotFound    = 22
	GroupMissing     = 26
	FlowControl      = 215
	NotLeaderOfQueue = 501
)

// version is the protocol's version that requests name, RocketMQ 4.9.4's.
const version = 403

// maxFrame is the largest frame that is taken. Brokers' own limit is 16 MiB.
const maxFrame = 64 << 20

// Command is a request or an answer.
type Command struct {
	Code   int               `json:"code"`
	Opaque int32             `json:"opaque"`
	Flag   int               `json:"flag"`
	Remark string            `json:"remark,omitempty"`
	Lang   string            `json:"language"`
	Vers   int               `json:"version"`
	Fields map[string]string `json:"extFields,omitempty"`
	Type   string            `json:"serializeTypeCurrentRPC"`

	Body []byte `json:"-"`
}

const flagAnswer, flagOneway = 1, 2

func (c *Command) answer() bool { return c.Flag&flagAnswer != 0 }

// Error is an answer that is no success.
type Error struct {
	Code   int
	Remark string
	Addr   string
	What   string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s at %s: answer %d (%s): %s", e.What, e.Addr, e.Code, codeName(e.Code), e.Remark)
}

var codeNames = map[int]string{SystemError: "system error", SystemBusy: "system busy", Unsupported: "request is not supported", FlushDiskTimeout: "flush to disk timed out", SlaveMissing: "no slave is there",
	FlushSlaveLate: "flush to slave timed out", MessageIllegal: "message is not acceptable", NoPermission: "no permission", TopicMissing: "topic doesn't exist",
	GroupMissing: "consumer group doesn't exist", FlowControl: "flow control", NotLeaderOfQueue: "the broker doesn't lead the queue"}

func codeName(code int) string {
	if n, ok := codeNames[code]; ok {
		return n
	}
	return "see RocketMQ's ResponseCode"
}

// appendFrame appends the command as it goes over the wire.
func appendFrame(dst []byte, c *Command) ([]byte, error) {
	head, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(4+len(head)+len(c.Body)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(head))) // the highest byte is the header's form: 0, JSON
	return append(append(dst, head...), c.Body...), nil
}

// readFrame reads a command. Its body is its own.
func readFrame(r *bufio.Reader) (*Command, error) {
	var n [8]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	total, head := int64(binary.BigEndian.Uint32(n[:])), binary.BigEndian.Uint32(n[4:])
	form, headLen := head>>24, int64(head&0xffffff)
	if total < 4+headLen || total > maxFrame {
		return nil, fmt.Errorf("not a RocketMQ frame: %d bytes with a header of %d", total, headLen)
	}
	buf := make([]byte, total-4)
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, err
	}
	c := &Command{}
	var err error
	switch form {
	case 0:
		err = json.Unmarshal(buf[:headLen], c)
	case 1:
		err = c.binaryHead(buf[:headLen])
	default:
		err = fmt.Errorf("unknown form %d", form)
	}
	if err != nil {
		return nil, fmt.Errorf("header of a RocketMQ frame: %w", err)
	}
	c.Body = buf[headLen:]
	return c, nil
}

// binaryHead reads the compact form of a header, which an answer has where its request had.
func (c *Command) binaryHead(p []byte) error {
	bad := fmt.Errorf("it ends too early")
	if len(p) < 13 {
		return bad
	}
	c.Code = int(binary.BigEndian.Uint16(p))
	c.Opaque = int32(binary.BigEndian.Uint32(p[5:]))
	c.Flag = int(binary.BigEndian.Uint32(p[9:]))
	p = p[13:]
	take := func(width int) ([]byte, bool) {
		if len(p) < width {
			return nil, false
		}
		n := 0
		for _, b := range p[:width] {
			n = n<<8 | int(b)
		}
		p = p[width:]
		if n < 0 || n > len(p) {
			return nil, false
		}
		out := p[:n]
		p = p[n:]
		return out, true
	}
	remark, ok := take(4)
	if !ok {
		return bad
	}
	c.Remark = string(remark)
	ext, ok := take(4)
	if !ok {
		return bad
	}
	c.Fields = map[string]string{}
	for p = ext; len(p) > 0; {
		k, ok := take(2)
		if !ok {
			return bad
		}
		v, ok := take(4)
		if !ok {
			return bad
		}
		c.Fields[string(k)] = string(v)
	}
	return nil
}
