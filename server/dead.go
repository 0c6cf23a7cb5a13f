package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/pipeline"
)

// Dead is what a request for dead letters gets: the newest of them, and how many there are.
type Dead struct {
	Total   int64               `json:"total"`
	Letters []*deadletter.Entry `json:"letters"`
}

// maxLetters bounds how many letters one answer holds, maxLetterBytes their size.
const (
	maxLetters     = 10_000
	maxLetterBytes = maxAnswer / 4
)

func (s *Server) dead(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f := &deadletter.Filter{IDs: q["id"], Step: q.Get("step"), Sink: q.Get("sink"), Reason: q.Get("reason")}
	limit := 100
	if l := q.Get("limit"); l != "" {
		n, err := strconv.Atoi(l)
		if err != nil || n < 1 || n > maxLetters {
			reply(w, http.StatusBadRequest, answer{Error: fmt.Sprintf("limit: want a number from 1 to %d", maxLetters)})
			return
		}
		limit = n
	}
	letters, total, err := s.o.Pipelines.Dead(r.Context(), nameOf(r), f, limit)
	if err != nil {
		fail(w, err)
		return
	}
	size := 0
	for i := len(letters) - 1; i >= 0; i-- {
		if size += len(letters[i].Record) + len(letters[i].RawBytes) + 1000; letters[i].Raw != nil {
			size += len(*letters[i].Raw)
		}
		if size > maxLetterBytes && i < len(letters)-1 {
			letters = letters[i+1:]
			break
		}
	}
	reply(w, http.StatusOK, Dead{total, append([]*deadletter.Entry{}, letters...)})
}

func (s *Server) replay(w http.ResponseWriter, r *http.Request) {
	var f deadletter.Filter
	if !body(w, r, &f) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), waitLimit)
	defer cancel()
	out, err := s.o.Pipelines.Replay(ctx, nameOf(r), &f)
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, http.StatusOK, out)
}

// resetAnswer is what a reset gets.
type resetAnswer struct {
	Splits int `json:"splits"`
}

func (s *Server) reset(w http.ResponseWriter, r *http.Request) {
	var what pipeline.Reset
	if !body(w, r, &what) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), waitLimit)
	defer cancel()
	n, err := s.o.Pipelines.Reset(ctx, nameOf(r), what)
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, http.StatusOK, resetAnswer{n})
}

// body reads a request's JSON; an empty one is the zero value.
func body(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		reply(w, http.StatusBadRequest, answer{Error: "the request's JSON can't be read: " + err.Error()})
		return false
	}
	return true
}

// path is a pipeline's in the API; name may lack `default/`.
func path(name string) string {
	ns, n, ok := strings.Cut(name, "/")
	if !ok {
		ns, n = "default", name
	}
	return "/v1/pipelines/" + url.PathEscape(ns) + "/" + url.PathEscape(n)
}

// Dead asks for the newest of the letters that the filter selects.
func (c *Client) Dead(ctx context.Context, name string, f *deadletter.Filter, limit int) (out Dead, err error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}, "id": f.IDs}
	for key, v := range map[string]string{"step": f.Step, "sink": f.Sink, "reason": f.Reason} {
		if v != "" {
			q.Set(key, v)
		}
	}
	err = c.Do(ctx, http.MethodGet, path(name)+"/dead?"+q.Encode(), &out)
	return out, err
}

// Replay has the selected letters replayed.
func (c *Client) Replay(ctx context.Context, name string, f *deadletter.Filter) (out pipeline.Replay, err error) {
	err = c.send(ctx, http.MethodPost, path(name)+"/dead/replay", f, &out)
	return out, err
}

// Reset has positions set back and tells how many splits that were.
func (c *Client) Reset(ctx context.Context, name string, r pipeline.Reset) (int, error) {
	var out resetAnswer
	err := c.send(ctx, http.MethodPost, path(name)+"/reset", r, &out)
	return out.Splits, err
}

// Remove has the state of a pipeline without a file forgotten.
func (c *Client) Remove(ctx context.Context, name string) error {
	return c.Do(ctx, http.MethodDelete, path(name), nil)
}
