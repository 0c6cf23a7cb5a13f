package rocketmq

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"go.uber.org/goleak"
)

// What runs before the tests is of the Go client that they compare with.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// stored makes a message as a broker stores it.
func stored(offset int64, sysFlag int32, body, props string) []byte {
	be := binary.BigEndian
	var p []byte
	p = be.AppendUint32(p, magicOne)
	p = be.AppendUint32(p, 0)
	p = be.AppendUint32(p, 3)
	p = be.AppendUint32(p, 9) // flag
	p = be.AppendUint64(p, uint64(offset))
	p = be.AppendUint64(p, 77)
	p = be.AppendUint32(p, uint32(sysFlag))
	p = be.AppendUint64(p, 1000)
	host := 8
	if sysFlag&flagBornV6 != 0 {
		host = 20
	}
	p = append(p, make([]byte, host)...)
	p = be.AppendUint64(p, 2000)
	host = 8
	if sysFlag&flagStoredV6 != 0 {
		host = 20
	}
	p = append(p, make([]byte, host)...)
	p = be.AppendUint32(p, 0)
	p = be.AppendUint64(p, 0)
	p = be.AppendUint32(p, uint32(len(body)))
	p = append(p, body...)
	p = append(append(p, 1), 't')
	p = be.AppendUint16(p, uint16(len(props)))
	p = append(p, props...)
	return append(be.AppendUint32(nil, uint32(len(p)+4)), p...)
}

// What is decoded is what RocketMQ's own client decodes, addresses of both kinds included.
func TestDecode(t *testing.T) {
	var p []byte
	for i, flag := range []int32{0, flagBornV6, flagStoredV6, flagBornV6 | flagStoredV6} {
		p = append(p, stored(int64(40+i), flag, fmt.Sprint("body ", i), "KEYS\x01k\x02TAGS\x01a\x02x\x01\x02")...)
	}
	want := primitive.DecodeMessage(p)
	for i := range want {
		var m Message
		var err error
		if p, err = Next(p, &m); err != nil {
			t.Fatal(err)
		}
		w := want[i]
		if m.Offset != w.QueueOffset || string(m.Body) != string(w.Body) || m.Born != w.BornTimestamp || m.Stored != w.StoreTimestamp || string(m.Prop("KEYS")) != "k" ||
			string(m.Prop("TAGS")) != "a" || m.Prop("x") == nil || m.Prop("y") != nil || string(m.Topic) != "t" || m.Flag != 9 {
			t.Errorf("%+v, want %v", m, w)
		}
	}
	if len(p) != 0 || len(want) != 4 {
		t.Error(len(p), len(want))
	}
}

func FuzzNext(f *testing.F) {
	f.Add(stored(1, 0, "body", "a\x01b\x02"), false)
	f.Add(stored(1, flagInner|flagUnwrap, string(AppendInner(nil, 0, []byte("x"), []byte("a\x01b\x02"))), "INNER_NUM\x011\x02"), false)
	f.Add(stored(1, flagCompressed, "x\x9c", ""), true)
	f.Add([]byte{0, 0, 0, 4}, true)
	f.Fuzz(func(t *testing.T, p []byte, compressed bool) {
		for len(p) > 0 {
			var m Message
			rest, err := Next(p, &m)
			if err != nil {
				return
			}
			if len(rest) >= len(p) {
				t.Fatal("no progress")
			}
			m.EachProp(func(k, v []byte) {})
			if compressed {
				m.SysFlag |= flagCompressed
			}
			if out, err := m.AppendBody(nil, 100); len(out) > 100 || err == nil && len(out) == 0 && len(m.Body) > 0 && !m.Compressed() {
				t.Fatal(len(out), err)
			}
			for in := m.Body; len(in) > 0; {
				var one Message
				if in, err = NextInner(in, &one); err != nil {
					break
				}
			}
			p = rest
		}
	})
}

func FuzzFrame(f *testing.F) {
	good, _ := appendFrame(nil, &Command{Code: 1, Fields: map[string]string{"a": "b"}, Body: []byte("x")})
	f.Add(good)
	f.Add([]byte("\x00\x00\x00\x20\x01\x00\x00\x18\x00\x0b\x00\x00\x01\x00\x00\x00\x07\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x01a"))
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) > 8 && binary.BigEndian.Uint32(p) > 1<<16 {
			return
		}
		readFrame(bufio.NewReader(bytes.NewReader(p)))
	})
}

// Queues go to members as RocketMQ's own clients share them, for every number of both.
func TestAllocate(t *testing.T) {
	for n := range 20 {
		var qs []Queue
		var theirs []*primitive.MessageQueue
		for i := range n {
			qs = append(qs, Queue{"t", "b", i})
			theirs = append(theirs, &primitive.MessageQueue{Topic: "t", BrokerName: "b", QueueId: i})
		}
		for m := 1; m < 8; m++ {
			var members []string
			for i := range m {
				members = append(members, fmt.Sprint("c", i))
			}
			for _, me := range members {
				got, ok := Allocate(qs, members, me)
				var want []Queue
				if n > 0 {
					for _, q := range consumer.AllocateByAveragely("g", me, theirs, members) {
						want = append(want, Queue{"t", "b", q.QueueId})
					}
				}
				if !ok || !slices.Equal(got, want) {
					t.Errorf("%d queues, %s of %d: %v, want %v", n, me, m, got, want)
				}
			}
		}
	}
	if _, ok := Allocate([]Queue{{}}, []string{"a"}, "b"); ok {
		t.Error("a member that isn't in the list")
	}
}

func TestRoute(t *testing.T) {
	r, err := parseRoute("t", []byte(`{"brokerDatas":[{"brokerAddrs":{0:"h:1",1:"h:2"},"brokerName":"b","cluster":"c"},{"brokerAddrs":{1:"h:3"},"brokerName":"a","cluster":"c"}],`+
		`"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":2,"writeQueueNums":1},{"brokerName":"a","perm":4,"readQueueNums":1,"writeQueueNums":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []Queue{{"t", "a", 0}, {"t", "b", 0}, {"t", "b", 1}}; !slices.Equal(r.Read, want) {
		t.Errorf("read %v", r.Read)
	}
	if want := []Queue{{"t", "b", 0}}; !slices.Equal(r.Write, want) {
		t.Errorf("write %v: broker a has no master, and its queue may not be written", r.Write)
	}
	if !reflect.DeepEqual(r.Masters, map[string]string{"b": "h:1"}) {
		t.Error(r.Masters)
	}
	var static *ErrStatic
	if _, err := parseRoute("t", []byte(`{"brokerDatas":[],"queueDatas":[],"topicQueueMappingByBroker":{"a":{"topic":"t"}}}`)); !errors.As(err, &static) {
		t.Error(err)
	}
	if _, err := parseRoute("t", []byte(`nonsense`)); err == nil {
		t.Error("nonsense")
	}
}

// The signature is over the values in the order of their names, and the body; computed with another tool.
func TestSignature(t *testing.T) {
	c := New(Options{AccessKey: "AK", SecretKey: "secret"})
	cmd := &Command{Fields: map[string]string{"queueId": "7", "topic": "t", "consumerGroup": "g"}, Body: []byte("body")}
	c.sign(cmd)
	if got := cmd.Fields["Signature"]; got != "RGCDmOrQlC7Hfl38EMHCuwWXHJ0=" {
		t.Error(got)
	}
}

// server answers each connection with f.
func server(t *testing.T, f func(nc net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			f(nc)
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().String()
}

// A connection that breaks fails its calls at once; a call ends with its context though no answer comes; the next call connects anew.
func TestBrokenConnection(t *testing.T) {
	n := 0
	addr := server(t, func(nc net.Conn) {
		defer nc.Close()
		n++
		r := bufio.NewReader(nc)
		cmd, err := readFrame(r)
		if err != nil {
			return
		}
		switch n {
		case 1: // closed without an answer
		case 2: // no answer until the client goes
			io.Copy(io.Discard, r)
		default:
			out, _ := appendFrame(nil, &Command{Code: Success, Opaque: cmd.Opaque, Flag: flagAnswer, Fields: map[string]string{"offset": "42"}})
			nc.Write(out)
			io.Copy(io.Discard, r)
		}
	})
	c := New(Options{})
	defer c.Close()
	begin := time.Now()
	if _, _, err := c.Offset(t.Context(), addr, "g", Queue{}); err == nil || !strings.Contains(err.Error(), "closed the connection") || time.Since(begin) > 3*time.Second {
		t.Error(err, time.Since(begin))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := c.Offset(ctx, addr, "g", Queue{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	c.Close()
	if at, ok, err := c.Offset(t.Context(), addr, "g", Queue{}); at != 42 || !ok || err != nil {
		t.Error(at, ok, err)
	}
}

// One name server that is away doesn't matter; all of them away is one error that names each.
func TestNameServersAway(t *testing.T) {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	dead := l.Addr().String()
	l.Close()
	c := New(Options{NameServers: []string{dead, dead}})
	defer c.Close()
	if _, err := c.Route(t.Context(), "t"); err == nil || strings.Count(err.Error(), dead) < 2 {
		t.Error(err)
	}
	alive := server(t, func(nc net.Conn) {
		defer nc.Close()
		r := bufio.NewReader(nc)
		for {
			cmd, err := readFrame(r)
			if err != nil {
				return
			}
			out, _ := appendFrame(nil, &Command{Code: TopicMissing, Opaque: cmd.Opaque, Flag: flagAnswer, Remark: "no such topic"})
			nc.Write(out)
		}
	})
	c = New(Options{NameServers: []string{dead, alive}})
	defer c.Close()
	if _, err := c.Route(t.Context(), "t"); !IsCode(err, TopicMissing) {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	for _, a := range []string{"127.0.0.1:9876", "[::1]:9876", "mq.example.org:9876"} {
		if err := CheckAddress(a); err != nil {
			t.Error(err)
		}
	}
	for _, a := range []string{"", "host", ":9876", "::1:9876", "host:"} {
		if CheckAddress(a) == nil {
			t.Errorf("%q", a)
		}
	}
}

// Failures are counted by their kind; what is usual, and what the caller gave up, isn't.
func TestErrorsAreCounted(t *testing.T) {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	dead := l.Addr().String()
	l.Close()
	answers := make(chan int, 1) // below 0: none, 0: the connection is closed
	addr := server(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		for {
			cmd, err := readFrame(r)
			if err != nil {
				nc.Close()
				return
			}
			switch code := <-answers; {
			case code < 0:
				io.Copy(io.Discard, r) // until the client goes
				nc.Close()
				return
			case code == 0:
				nc.Close()
				return
			default:
				out, _ := appendFrame(nil, &Command{Code: code, Opaque: cmd.Opaque, Flag: flagAnswer})
				nc.Write(out)
			}
		}
	})
	c := New(Options{})
	call := func(ctx context.Context, addr string, answer int) {
		answers <- answer
		if _, ok, _ := c.Offset(ctx, addr, "g", Queue{}); ok {
			t.Error("no error")
		}
	}
	call(t.Context(), addr, QueryNotFound)
	call(t.Context(), addr, NoPermission)
	call(t.Context(), addr, SystemBusy)
	call(t.Context(), addr, 0)
	c.Offset(t.Context(), dead, "g", Queue{})
	c.Offset(t.Context(), dead, "g", Queue{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	call(ctx, addr, -1)
	c.Close()
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	call(ctx, addr, -1)
	c.Close()
	if got, want := c.Errors(), map[string]int64{"connect": 2, "lost": 1, "timeout": 1, "refused": 2}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
