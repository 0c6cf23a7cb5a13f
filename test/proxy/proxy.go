// Package proxy is a TCP proxy before a real server that cuts, slows and holds what passes, for tests.
package proxy

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy passes connections on to a server.
type Proxy struct {
	Addr string // host:port to connect to

	target string
	l      net.Listener
	wg     sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
	down   bool
	hook   Hook
}

// Hook sees each piece that passes, before it does, and says what to do with it. up: from the client to the server.
// It is called from several goroutines at once.
type Hook func(up bool, piece []byte) Fault

// Fault is what happens to a piece.
type Fault struct {
	Keep  int           // pass only so many bytes of it, then Cut; with Cut alone: none
	Cut   bool          // reset the connection to the client after that
	Last  bool          // pass all of it, and nothing back to the client any more: the connection to it is reset, the server gets what it got
	Delay time.Duration // before it is passed
	Drip  time.Duration // pass it a few bytes at a time, with that much time between
}

// New starts a proxy for the test's time.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, l: l, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Set puts a hook in place; nil: everything passes.
func (p *Proxy) Set(h Hook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = h
}

// Down refuses connections and resets those there are; Down(false) ends that.
func (p *Proxy) Down(down bool) {
	p.mu.Lock()
	p.down = down
	p.mu.Unlock()
	if down {
		p.Reset()
	}
}

// Reset resets all connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		reset(c)
	}
}

func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.l.Close()
	p.Reset()
	p.wg.Wait()
}

func (p *Proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.down {
		reset(c)
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		if !p.add(c) {
			continue
		}
		s, err := net.Dial("tcp", p.target)
		if err != nil || !p.add(s) {
			reset(c)
			continue
		}
		p.wg.Go(func() { p.pass(c, s, true) })
		p.wg.Go(func() { p.pass(s, c, false) })
	}
}

func (p *Proxy) pass(from, to net.Conn, up bool) {
	client := to
	if up {
		client = from
	}
	defer func() {
		from.Close()
		to.Close()
		p.mu.Lock()
		delete(p.conns, from)
		delete(p.conns, to)
		p.mu.Unlock()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.mu.Lock()
			hook := p.hook
			p.mu.Unlock()
			var f Fault
			if hook != nil {
				f = hook(up, buf[:n])
			}
			time.Sleep(f.Delay)
			piece := buf[:n]
			if f.Cut {
				piece = piece[:min(f.Keep, n)]
			}
			if f.Last {
				reset(client) // before the server can answer
			}
			if err := write(to, piece, f.Drip); err != nil {
				return
			}
			if f.Cut {
				reset(client)
				return
			}
			if f.Last {
				to.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, to)
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func write(to net.Conn, piece []byte, drip time.Duration) error {
	if drip == 0 {
		_, err := to.Write(piece)
		return err
	}
	const few = 31
	for i := 0; i < len(piece); i += few {
		if _, err := to.Write(piece[i:min(i+few, len(piece))]); err != nil {
			return err
		}
		time.Sleep(drip)
	}
	return nil
}
