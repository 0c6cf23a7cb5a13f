package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// Access is who may use the API and how it is reached. The zero value: everyone on this host, without TLS.
type Access struct {
	TokenFile string // requests but /healthz must carry its content: Authorization: Bearer TOKEN
	Cert, Key string // PEM files; read again when they change

	token [32]byte
	has   bool
	tls   *tls.Config
}

// minToken is how many characters a token has at least.
const minToken = 16

// Load reads the files.
func (a *Access) Load() error {
	if a.TokenFile != "" {
		token, err := readToken(a.TokenFile)
		if err != nil {
			return err
		}
		a.token, a.has = sha256.Sum256([]byte(token)), true
	}
	if (a.Cert == "") != (a.Key == "") {
		return errors.New("--tls-cert and --tls-key belong together: give both, or none")
	}
	if a.Cert == "" {
		return nil
	}
	p := &pair{cert: a.Cert, key: a.Key}
	if _, err := p.get(nil); err != nil {
		return fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	a.tls = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: p.get, NextProtos: []string{"http/1.1"}}
	return nil
}

func readToken(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if len(token) < minToken {
		return "", fmt.Errorf("--token-file: %s holds a token of %d characters; it needs at least %d, as from `openssl rand -hex 32`", path, len(token), minToken)
	}
	return token, nil
}

// open tells whether the API may be served to other hosts.
func (a *Access) open() bool { return a.has && a.tls != nil }

// guard lets only requests with the token through.
func (a *Access) guard(h http.Handler) http.Handler {
	if !a.has {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(token))
		if r.URL.Path != "/healthz" && (!strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], a.token[:]) != 1) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="rsetl"`)
			reply(w, http.StatusUnauthorized, answer{Error: "the token is missing or wrong; send the header Authorization: Bearer TOKEN, or give --token-file"})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// pair is a certificate that is read again when its file has changed.
type pair struct {
	cert, key string
	mu        sync.Mutex
	read      time.Time // the file's time
	last      *tls.Certificate
}

func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st, err := os.Stat(p.cert)
	if err == nil && p.last != nil && st.ModTime().Equal(p.read) {
		return p.last, nil
	}
	if err == nil {
		var c tls.Certificate
		if c, err = tls.LoadX509KeyPair(p.cert, p.key); err == nil {
			p.last, p.read = &c, st.ModTime()
		}
	}
	if err != nil && p.last != nil { // in the middle of being replaced
		return p.last, nil
	}
	return p.last, err
}

// Listen opens the address; port 0 takes a free one. Addresses that aren't loopback need a token and TLS.
func Listen(addr string, a *Access) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w; write for example 127.0.0.1:8686", addr, err)
	}
	if !a.open() && !loopback(host) {
		return nil, fmt.Errorf("--listen %s: other hosts are served with a token and TLS only: give --token-file, --tls-cert and --tls-key, or write 127.0.0.1:%s", addr, port)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the API: %w", err)
	}
	if t, ok := l.Addr().(*net.TCPAddr); !a.open() && (!ok || !t.IP.IsLoopback()) { // localhost may stand for anything
		l.Close()
		return nil, fmt.Errorf("--listen %s: that is %s, not a loopback address", addr, l.Addr())
	}
	return l, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// clientTLS trusts the authorities in a PEM file beside the system's; "" for those alone.
func clientTLS(caFile string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return c, nil
	}
	b, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	if c.RootCAs, err = x509.SystemCertPool(); err != nil {
		c.RootCAs = x509.NewCertPool()
	}
	if !c.RootCAs.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("--tls-ca: %s holds no PEM certificate", caFile)
	}
	return c, nil
}
