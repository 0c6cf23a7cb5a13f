package elasticsearch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/klauspost/compress/gzip"
	"github.com/olivere/elastic/v7"
)

// answer is what a node said, read to its end.
type answer struct {
	status     int
	retryAfter time.Duration // 0: it doesn't say
	body       []byte
}

// bodied makes a read answer a response's body that can be taken back.
type bodied struct {
	data []byte
	off  int
}

func (b *bodied) Read(p []byte) (int, error) {
	if b.off == len(b.data) {
		return 0, io.EOF
	}
	n := copy(p, b.data[b.off:])
	b.off += n
	return n, nil
}

func (b *bodied) Close() error { return nil }

// doer sends requests for the client. When Do returns, the answer is read to its end, and nobody uses the request's
// body any more: it is memory that the next request is written to.
type doer struct {
	client  *http.Client
	timeout time.Duration
	gzip    bool
	writers sync.Pool // *zipped
}

// maxAnswer bounds an answer's size.
const maxAnswer = 256 << 20

var errTimeout = errors.New("no answer in time")

func (d *doer) Do(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(req.Context(), d.timeout, errTimeout)
	defer cancel()
	if v := req.Header["Accept"]; len(v) > 1 { // the client's own and ours
		req.Header["Accept"] = v[len(v)-1:]
	}
	var sent *body
	if req.Body != nil && req.Body != http.NoBody {
		if d.gzip {
			z, err := d.compress(req)
			if err != nil {
				return nil, err
			}
			defer d.writers.Put(z)
		}
		sent = &body{ReadCloser: req.Body, closed: make(chan struct{})}
		req.Body, req.GetBody = sent, nil
	}
	res, err := d.client.Do(req.WithContext(ctx))
	if err == nil {
		// One byte more than there will be, so that the end is seen without growing.
		data := make([]byte, 0, 512+max(0, min(res.ContentLength, 1<<20)))
		data, err = readAll(data, io.LimitReader(res.Body, maxAnswer))
		res.Body.Close()
		res.Body = &bodied{data: data}
		if err == nil && len(data) == maxAnswer {
			err = fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
		}
		if err != nil {
			err = fmt.Errorf("read the answer: %w", err)
		}
	}
	if err != nil && context.Cause(ctx) == errTimeout {
		// Not a context's error: those don't count against the node.
		err = fmt.Errorf("%s: %w: %s", req.URL.Host, errTimeout, d.timeout)
	}
	if sent != nil {
		if err != nil {
			cancel()
		}
		<-sent.closed // the transport closes it in any case
	}
	if err != nil {
		return nil, err
	}
	return res, nil
}

// readAll is io.ReadAll into p.
func readAll(p []byte, r io.Reader) ([]byte, error) {
	for {
		if len(p) == cap(p) {
			p = append(p, 0)[:len(p)]
		}
		n, err := r.Read(p[len(p):cap(p)])
		p = p[:len(p)+n]
		if err == io.EOF {
			return p, nil
		}
		if err != nil {
			return p, err
		}
	}
}

type body struct {
	io.ReadCloser
	once   sync.Once
	closed chan struct{}
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(func() { close(b.closed) })
	return err
}

type zipped struct {
	w   *gzip.Writer
	buf buffer
}

type buffer []byte

func (b *buffer) Write(p []byte) (int, error) { *b = append(*b, p...); return len(p), nil }

func (d *doer) compress(req *http.Request) (*zipped, error) {
	z, _ := d.writers.Get().(*zipped)
	if z == nil {
		z = &zipped{}
		z.w, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed)
	}
	z.buf = z.buf[:0]
	z.w.Reset(&z.buf)
	if _, err := io.Copy(z.w, req.Body); err != nil {
		return nil, err
	}
	if err := z.w.Close(); err != nil {
		return nil, err
	}
	req.Header.Set("Content-Encoding", "gzip")
	req.ContentLength = int64(len(z.buf))
	req.Body = &bodied{data: z.buf}
	return z, nil
}

// reviveAfter is when nodes that did not answer get another chance.
const reviveAfter = 30 * time.Second

// connect makes the client; it speaks to no node yet.
func (s *Sink) connect() error {
	t, err := s.c.tlsConfig()
	if err != nil {
		return err
	}
	dial := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	s.transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial.DialContext, TLSClientConfig: t, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: false, DisableCompression: true,
		WriteBufferSize: 64 << 10,
	}
	s.do = &doer{timeout: s.c.Timeout.D(), gzip: s.c.Gzip, client: &http.Client{
		Transport: s.transport,
		// A redirect would be followed without the body.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return s.revive()
}

// revive takes all nodes for alive.
func (s *Sink) revive() error {
	o := []elastic.ClientOptionFunc{
		elastic.SetURL(s.c.urls()...), elastic.SetHttpClient(s.do), elastic.SetSniff(false), elastic.SetHealthcheck(false), elastic.SetHeaders(s.c.headers),
	}
	if s.c.User != "" {
		o = append(o, elastic.SetBasicAuth(s.c.User, s.c.Password))
	}
	client, err := elastic.NewSimpleClient(o...)
	if err != nil {
		return fmt.Errorf("elasticsearch: %w", err)
	}
	s.client.Store(&nodes{Client: client, since: time.Now()})
	return nil
}

// nodes is a client and since when it may hold nodes for dead.
type nodes struct {
	*elastic.Client
	since time.Time
}

// statuses are all those that are looked at here, not by the client.
var statuses = func() (out []int) {
	for i := 300; i < 600; i++ {
		out = append(out, i)
	}
	return out
}()

// request sends one request, to another node where one can't be reached.
func (s *Sink) request(ctx context.Context, method, path string, params url.Values, payload []byte) (*answer, error) {
	n := s.client.Load()
	if len(s.c.Hosts) > 1 && time.Since(n.since) > reviveAfter {
		if err := s.revive(); err != nil {
			return nil, err
		}
		n = s.client.Load()
	}
	o := elastic.PerformRequestOptions{Method: method, Path: path, Params: params, IgnoreErrors: statuses, Stream: true}
	if payload != nil {
		o.Body = unsafe.String(unsafe.SliceData(payload), len(payload)) // see doer
		o.ContentType = "application/x-ndjson"
	}
	if s.c.Compat != 0 {
		with := ";compatible-with=" + strconv.Itoa(s.c.Compat)
		o.Headers = http.Header{"Accept": {"application/vnd.elasticsearch+json" + with}}
		if payload != nil {
			o.ContentType = "application/vnd.elasticsearch+x-ndjson" + with
		}
	}
	var last error
	for tries := 0; tries < len(s.c.Hosts); tries++ {
		res, err := n.PerformRequest(ctx, o)
		if errors.Is(err, elastic.ErrNoClient) { // all were dead; now they count as alive
			if last != nil {
				break
			}
			res, err = n.PerformRequest(ctx, o)
		}
		if err == nil {
			a := &answer{status: res.StatusCode, body: res.BodyReader.(*bodied).data}
			a.retryAfter = retryAfter(res.Header.Get("Retry-After"))
			return a, nil
		}
		last = err
		if ctx.Err() != nil || errors.Is(err, errTimeout) { // it may be at work on it
			break
		}
	}
	return nil, fmt.Errorf("elasticsearch %s: %w", strings.Join(redacted(s.c.urls()), ", "), last)
}

func redacted(hosts []string) (out []string) {
	for _, h := range hosts {
		if u, err := url.Parse(h); err == nil {
			h = u.Redacted()
		}
		out = append(out, h)
	}
	return out
}

// maxRetryAfter bounds what a server may wish for.
const maxRetryAfter = 5 * time.Minute

// retryAfter reads the header: seconds, or a date.
func retryAfter(h string) time.Duration {
	if h == "" {
		return 0
	}
	if n, err := strconv.Atoi(strings.TrimSpace(h)); err == nil {
		return min(max(0, time.Duration(n)*time.Second), maxRetryAfter)
	}
	if t, err := http.ParseTime(h); err == nil {
		return min(max(0, time.Until(t)), maxRetryAfter)
	}
	return 0
}
