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
	addr string
	http *http.Client
}

// maxAnswer bounds what a client reads.
const maxAnswer = 64 << 20

// NewClient asks the daemon at addr, or where that is empty the one of the state directory.
func NewClient(addr, stateDir string) (*Client, error) {
	if addr == "" {
		b, err := os.ReadFile(filepath.Join(stateDir, "listen"))
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("no daemon runs on the state directory %s; give its --state-dir or --addr", stateDir)
		}
		if err != nil {
			return nil, fmt.Errorf("find the daemon: %w", err)
		}
		addr = strings.TrimSpace(string(b))
	}
	if host, _, err := net.SplitHostPort(addr); err != nil || !loopback(host) {
		return nil, fmt.Errorf("%q is no loopback address; write for example 127.0.0.1:8686", addr)
	}
	return &Client{addr: addr, http: &http.Client{Timeout: writeLimit, Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil,
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext}}}, nil
}

// Do sends a request and decodes the answer; an answer that is no success is an error with its text.
func (c *Client) Do(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.addr+path, nil)
	if err != nil {
		return err
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
	ns, n, ok := strings.Cut(name, "/")
	if !ok {
		ns, n = "default", name
	}
	var a answer
	err := c.Do(ctx, http.MethodPost, "/v1/pipelines/"+url.PathEscape(ns)+"/"+url.PathEscape(n)+"/"+what, &a)
	return a.Pipeline, err
}

// Rescan makes the daemon read its folder, and gives what its pipelines are then.
func (c *Client) Rescan(ctx context.Context) (all []manager.Status, err error) {
	err = c.Do(ctx, http.MethodPost, "/v1/reload", &all)
	return all, err
}
