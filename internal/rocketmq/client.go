package rocketmq

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options say which cluster, and as whom.
type Options struct {
	NameServers []string // host:port
	AccessKey   string   // "": no keys
	SecretKey   string
	Token       string
	TLS         *tls.Config // nil: plain
	Namespace   string
	// Changed is called when a broker tells that a group's members changed; from a connection's goroutine, so it must not wait.
	Changed func()
	Dial    func(ctx context.Context, addr string) (net.Conn, error) // nil: TCP
}

// Client holds one connection to each server it talks to. Its methods may be called concurrently.
type Client struct {
	o     Options
	first atomic.Int32 // the name server that answered last
	fails failures

	mu     sync.Mutex
	conns  map[string]*conn
	dials  map[string]*dialing
	dialed time.Time // when a broker was last connected to anew
}

type dialing struct {
	done chan struct{}
	c    *conn
	err  error
}

// New makes a client. It connects to nothing.
func New(o Options) *Client {
	if o.Dial == nil {
		d := net.Dialer{Timeout: dialTimeout, KeepAlive: 10 * time.Second}
		o.Dial = func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	return &Client{o: o, conns: map[string]*conn{}, dials: map[string]*dialing{}}
}

// Close ends every connection; calls that wait return an error. The client may be used again afterwards: it connects anew.
func (c *Client) Close() {
	c.mu.Lock()
	conns := slices.Collect(maps.Values(c.conns))
	clear(c.conns)
	c.mu.Unlock()
	for _, k := range conns {
		k.close()
	}
}

// Dialed is when a server was last connected to anew.
func (c *Client) Dialed() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dialed
}

// Connected is when the connection to a server was made; zero where there is none.
func (c *Client) Connected(addr string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.conns[addr]; k != nil {
		return k.at
	}
	return time.Time{}
}

// CheckAddress tells what is wrong with a server's address.
func CheckAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || port == "" {
		return fmt.Errorf("%q is not host:port (an IPv6 address in brackets, as in [::1]:9876)", addr)
	}
	return nil
}

func (c *Client) conn(ctx context.Context, addr string) (*conn, error) {
	c.mu.Lock()
	if k := c.conns[addr]; k != nil {
		if k.broken() == nil {
			c.mu.Unlock()
			return k, nil
		}
		delete(c.conns, addr)
	}
	d := c.dials[addr]
	if d == nil {
		d = &dialing{done: make(chan struct{})}
		c.dials[addr] = d
		go c.dial(addr, d)
	}
	c.mu.Unlock()
	select {
	case <-d.done:
		return d.c, d.err
	case <-ctx.Done():
		return nil, fmt.Errorf("connect to %s: %w", addr, context.Cause(ctx))
	}
}

func (c *Client) dial(addr string, d *dialing) {
	defer close(d.done)
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	nc, err := c.o.Dial(ctx, addr)
	if err == nil && c.o.TLS != nil {
		conf := c.o.TLS.Clone()
		if conf.ServerName == "" {
			conf.ServerName, _, _ = net.SplitHostPort(addr)
		}
		t := tls.Client(nc, conf)
		if err = t.HandshakeContext(ctx); err != nil {
			nc.Close()
		}
		nc = t
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.dials, addr)
	if err != nil {
		d.err = fmt.Errorf("connect to %s: %w", addr, err)
		return
	}
	d.c = newConn(nc, addr, c.pushed)
	c.conns[addr] = d.c
	c.dialed = d.c.at
}

func (c *Client) pushed(cmd *Command) {
	if (cmd.Code == codeMembersChanged || cmd.Code == codeResetOffsetPush) && c.o.Changed != nil {
		c.o.Changed()
	}
}

// call sends a request to addr and gives its answer, whatever its code.
func (c *Client) call(ctx context.Context, addr string, code int, fields map[string]string, body []byte) (*Command, error) {
	k, err := c.conn(ctx, addr)
	if err != nil {
		c.fails.note(ctx, &c.fails.connect, err)
		return nil, err
	}
	cmd := &Command{Code: code, Lang: "GO", Vers: version, Type: "JSON", Fields: fields, Body: body}
	c.sign(cmd)
	a, err := k.call(ctx, cmd)
	if err != nil {
		c.fails.note(ctx, &c.fails.lost, err)
	} else if !slices.Contains(usual, a.Code) {
		c.fails.refused.Add(1)
	}
	return a, err
}

// must is call for those whose answer is to be a success.
func (c *Client) must(ctx context.Context, what, addr string, code int, fields map[string]string, body []byte) (*Command, error) {
	a, err := c.call(ctx, addr, code, fields, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if a.Code != Success {
		remark, _, _ := strings.Cut(a.Remark, "\n")
		return a, &Error{Code: a.Code, Remark: remark, Addr: addr, What: what}
	}
	return a, nil
}

// sign adds the access key and the signature over all fields, by name, and the body.
func (c *Client) sign(cmd *Command) {
	if c.o.AccessKey == "" {
		return
	}
	if cmd.Fields == nil {
		cmd.Fields = map[string]string{}
	}
	cmd.Fields["AccessKey"] = c.o.AccessKey
	if c.o.Token != "" {
		cmd.Fields["SecurityToken"] = c.o.Token
	}
	mac := hmac.New(sha1.New, []byte(c.o.SecretKey))
	for _, k := range slices.Sorted(maps.Keys(cmd.Fields)) {
		io.WriteString(mac, cmd.Fields[k])
	}
	mac.Write(cmd.Body)
	cmd.Fields["Signature"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// nameServers asks one name server after another until one answers, the one that did last time first.
func (c *Client) nameServers(ctx context.Context, f func(ctx context.Context, addr string) error) error {
	var errs []error
	first := int(c.first.Load())
	for i := range c.o.NameServers {
		n := (first + i) % len(c.o.NameServers)
		one, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := f(one, c.o.NameServers[n])
		cancel()
		var answer *Error
		if err == nil || errors.As(err, &answer) {
			c.first.Store(int32(n))
			return err
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return fmt.Errorf("no name server answers: %w", errors.Join(errs...))
}

// Wrap is the name of a topic or group within the namespace.
func (c *Client) Wrap(name string) string {
	if c.o.Namespace == "" || strings.HasPrefix(name, c.o.Namespace+"%") {
		return name
	}
	return c.o.Namespace + "%" + name
}

// IsCode tells whether err is an answer with one of those codes.
func IsCode(err error, codes ...int) bool {
	var e *Error
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}
