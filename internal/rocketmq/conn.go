package rocketmq

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// conn is one connection. Requests of any number of goroutines go over it at once.
type conn struct {
	addr string
	nc   net.Conn
	at   time.Time      // when it was made
	push func(*Command) // what the server sends of itself

	write sync.Mutex
	buf   []byte

	mu      sync.Mutex
	opaque  int32
	waiting map[int32]chan *Command
	err     error // why it is broken
	ended   chan struct{}
}

const (
	dialTimeout  = 5 * time.Second
	writeTimeout = 15 * time.Second
)

var errClosed = errors.New("connection is closed")

func newConn(nc net.Conn, addr string, push func(*Command)) *conn {
	c := &conn{addr: addr, nc: nc, at: time.Now(), push: push, waiting: map[int32]chan *Command{}, ended: make(chan struct{})}
	go c.read()
	return c
}

func (c *conn) read() {
	defer close(c.ended)
	r := bufio.NewReaderSize(c.nc, 64<<10)
	for {
		cmd, err := readFrame(r)
		if err != nil {
			if err == io.EOF {
				err = errors.New("the server closed the connection")
			}
			c.fail(err)
			return
		}
		if !cmd.answer() {
			c.push(cmd)
			continue
		}
		c.mu.Lock()
		ch := c.waiting[cmd.Opaque]
		delete(c.waiting, cmd.Opaque)
		c.mu.Unlock()
		if ch != nil {
			ch <- cmd
		}
	}
}

// fail ends the connection and all that waits for it.
func (c *conn) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	for _, ch := range c.waiting {
		close(ch)
	}
	clear(c.waiting)
	c.mu.Unlock()
	c.nc.Close()
}

func (c *conn) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *conn) close() {
	c.fail(errClosed)
	<-c.ended
}

// call sends a request and waits for its answer, whatever its code.
func (c *conn) call(ctx context.Context, cmd *Command) (*Command, error) {
	ch := make(chan *Command, 1)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", c.addr, c.err)
	}
	c.opaque++
	cmd.Opaque = c.opaque
	c.waiting[cmd.Opaque] = ch
	c.mu.Unlock()
	c.write.Lock()
	var err error
	if c.buf, err = appendFrame(c.buf[:0], cmd); err == nil {
		c.nc.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err = c.nc.Write(c.buf); err != nil {
			c.fail(err)
		}
	}
	if cap(c.buf) > 1<<20 {
		c.buf = nil
	}
	c.write.Unlock()
	if err == nil {
		select {
		case a, ok := <-ch:
			if ok {
				return a, nil
			}
			err = c.broken()
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	c.mu.Lock()
	delete(c.waiting, cmd.Opaque)
	c.mu.Unlock()
	return nil, fmt.Errorf("%s: %w", c.addr, err)
}
