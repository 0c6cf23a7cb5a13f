package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rsetl/rsetl/pipeline/manager"
)

// Client asks a running daemon.
type Client struct {
	addr  string
	base  string // https://host:port
	token string
	http  *http.Client
}

// Target is the daemon that a client asks.
type Target struct {
	Addr      string // host:port, https:// before it for TLS; "": the daemon of StateDir
	StateDir  string
	TokenFile string
	CAFile    string // authorities for TLS, beside the system's
}

// maxAnswer bounds what a client reads.
const maxAnswer = 64 << 20

// NewClient makes a client for a daemon. Other hosts are asked with TLS only, so that the token stays secret.
func NewClient(t Target) (*Client, error) {
	addr := t.Addr
	if addr == "" {
		b, err := os.ReadFile(filepath.Join(t.StateDir, "listen"))
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("no daemon runs on the state directory %s; give its --state-dir or --addr", t.StateDir)
		}
		if err != nil {
			return nil, fmt.Errorf("find the daemon: %w", err)
		}
		addr = strings.TrimSpace(string(b))
	}
	c := &Client{}
	hostPort, secure := strings.CutPrefix(addr, "https://")
	hostPort = strings.TrimPrefix(hostPort, "http://")
	host, port, err := net.SplitHostPort(hostPort)
	switch {
	case err != nil || port == "":
		return nil, fmt.Errorf("%q is no address; write for example 127.0.0.1:8686", addr)
	case !secure && !loopback(host):
		return nil, fmt.Errorf("%q is no loopback address; another host is asked with TLS only: https://%s", addr, hostPort)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() { // what a daemon listens on that serves all
		hostPort = net.JoinHostPort("localhost", port)
	}
	c.addr, c.base = hostPort, "http://"+hostPort
	transport := &http.Transport{DisableKeepAlives: true, Proxy: nil, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext}
	if secure {
		c.base = "https://" + hostPort
		if transport.TLSClientConfig, err = clientTLS(t.CAFile); err != nil {
			return nil, err
		}
	}
	if t.TokenFile != "" {
		if c.token, err = readToken(t.TokenFile); err != nil {
			return nil, err
		}
	}
	c.http = &http.Client{Timeout: writeLimit, Transport: transport}
	return c, nil
}

// Do sends a request and decodes the answer; an answer that is no success is an error with its text.
func (c *Client) Do(ctx context.Context, method, path string, into any) error {
	return c.send(ctx, method, path, nil, into)
}

// send does the same with a JSON body.
func (c *Client) send(ctx context.Context, method, path string, body, into any) error {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return fmt.Errorf("no daemon answers at %s: %w", c.addr, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the daemon's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		var a answer
		if json.Unmarshal(b, &a) == nil && a.Error != "" {
			return errors.New(a.Error)
		}
		return fmt.Errorf("the daemon at %s answers %s: %s", c.addr, resp.Status, bytes.TrimSpace(b[:min(len(b), 200)]))
	}
	if raw, ok := into.(*[]byte); ok {
		*raw = b
		return nil
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("the daemon's answer at %s can't be read: %w", c.addr, err)
	}
	return nil
}

// Status lists the pipelines, and the files that are none.
func (c *Client) Status(ctx context.Context) (all []manager.Status, problems []manager.Problem, err error) {
	if err = c.Do(ctx, http.MethodGet, "/v1/pipelines", &all); err == nil {
		err = c.Do(ctx, http.MethodGet, "/v1/problems", &problems)
	}
	return all, problems, err
}

// Act does flush, pause, resume, reload or check with a pipeline; name may lack `default/`.
func (c *Client) Act(ctx context.Context, name, what string) (*manager.Status, error) {
	var a answer
	err := c.Do(ctx, http.MethodPost, path(name)+"/"+what, &a)
	return a.Pipeline, err
}

// Rescan makes the daemon read its folder, and gives what its pipelines are then.
func (c *Client) Rescan(ctx context.Context) (all []manager.Status, err error) {
	err = c.Do(ctx, http.MethodPost, "/v1/reload", &all)
	return all, err
}

// Get is one pipeline with its splits.
func (c *Client) Get(ctx context.Context, name string) (s manager.Status, err error) {
	err = c.Do(ctx, http.MethodGet, path(name), &s)
	return s, err
}
