package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// certificate writes a self-signed one for localhost and gives the paths of certificate and key.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "rsetl"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	kder, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: kder}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestAccess(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	token, wrong, short := filepath.Join(dir, "token"), filepath.Join(dir, "wrong"), filepath.Join(dir, "short")
	for path, text := range map[string]string{token: "0123456789abcdef\n", wrong: "0123456789abcdeF\n", short: "secret\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for what, a := range map[string]*Access{"at least 16": {TokenFile: short}, "belong together": {Cert: cert}, "no such file": {Cert: cert, Key: "nowhere"}} {
		if err := a.Load(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %s", err, what)
		}
	}
	for _, a := range []*Access{{TokenFile: token}, {Cert: cert, Key: key}} {
		if err := a.Load(); err != nil {
			t.Fatal(err)
		}
		if l, err := Listen("0.0.0.0:0", a); err == nil {
			l.Close()
			t.Errorf("open with %+v", a)
		}
	}
	a := &Access{TokenFile: token, Cert: cert, Key: key}
	if err := a.Load(); err != nil {
		t.Fatal(err)
	}
	l, err := Listen("0.0.0.0:0", a)
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewPedanticRegistry()
	s, err := New(l, Options{Pipelines: &fake{}, Registerer: reg, Gatherer: reg, Access: a})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	defer func() {
		s.Close(context.Background())
		<-done
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := WriteAddr(dir, s.Addr()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		target Target
		want   string
	}{
		{Target{StateDir: dir, TokenFile: token, CAFile: cert}, ""},
		{Target{Addr: "https://127.0.0.1:" + port, TokenFile: token, CAFile: cert}, ""},
		{Target{StateDir: dir, TokenFile: wrong, CAFile: cert}, "token is missing or wrong"},
		{Target{StateDir: dir, CAFile: cert}, "token is missing or wrong"},
		{Target{StateDir: dir, TokenFile: token}, "certificate"},
		{Target{Addr: "127.0.0.1:" + port, TokenFile: token}, "HTTPS"},
	} {
		cl, err := NewClient(c.target)
		if err == nil {
			_, _, err = cl.Status(context.Background())
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c.target, err)
		}
	}
	// A liveness probe needs no token; a new certificate is taken without a restart.
	probe := func() error {
		tr := &http.Transport{DisableKeepAlives: true}
		if tr.TLSClientConfig, err = clientTLS(cert); err != nil {
			return err
		}
		resp, err := (&http.Client{Transport: tr}).Get("https://localhost:" + port + "/healthz")
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	if err := probe(); err != nil {
		t.Error(err)
	}
	certificate(t, dir)
	if err := os.Chtimes(cert, time.Now(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := probe(); err != nil {
		t.Error("with the new certificate:", err)
	}
}
