package rocketmq

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsetl/rsetl/test/binary"
	"github.com/rsetl/rsetl/test/services"
)

// Access control: one process reads from a cluster as a user that may read and write only and writes to another one with other keys; wrong keys
// are told, and nothing hangs.
func TestAccessControl(t *testing.T) {
	all := services.RocketMQ(t)
	var from, to *services.Cluster
	var wg sync.WaitGroup
	wg.Go(func() {
		from = all.Secured(t, "c")
		if err := from.Client.CreateUser(t.Context(), from.Brokers[0], "worker", "secret-of-worker", []string{"Topic:*", "Group:*"}, []string{"Pub", "Sub"}); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() { to = all.Secured(t, "d") })
	wg.Wait()
	if t.Failed() {
		return
	}
	in, out, group, dir := from.Topic(t, 2), to.Topic(t, 2), services.Unique("g"), t.TempDir()
	route := from.Route(t, in, 2)
	put(t, from, in, 100)
	yaml := func(key, secret string) string {
		return strings.Replace(source(all, group, in, ""), "group:", fmt.Sprintf("access_key: %s, secret_key: %s, group:", key, secret), 1) + fmt.Sprintf(
			"sinks: [{rocketmq: {name_servers: ['%s'], access_key: key-d, secret_key: secret-of-d, topic: %s, body: '%%{message}'}}]\n", all.NameServer, out)
	}
	once(t, filepath.Join(dir, "right"), yaml("worker", "secret-of-worker"))
	got := map[string]int{}
	for _, text := range contentsOf(t, to, out, 2) {
		got[text]++
	}
	for i := range 100 {
		if got[fmt.Sprint("message ", i)] != 1 {
			t.Fatalf("message %d came %d times", i, got[fmt.Sprint("message ", i)])
		}
	}
	for _, q := range route.Read {
		if n, _, err := from.Client.Offset(t.Context(), from.Brokers[0], group, q); n != 50 || err != nil {
			t.Errorf("offset %d of %v: %v", n, q, err)
		}
	}

	for i, k := range []struct{ key, secret, want string }{{"worker", "wrong", "check signature failed"}, {"stranger", "secret-of-worker", "User:stranger is not found"}, {"key-d", "secret-of-d", "User:key-d is not found"}} {
		sub := filepath.Join(dir, fmt.Sprint("wrong", i))
		p := start(t, sub, yaml(k.key, k.secret))
		await(t, 20*time.Second, "the reason", func() bool { return strings.Contains(p.output(), k.want) })
		begin := time.Now()
		p.cmd.Process.Signal(os.Interrupt)
		p.end(t)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s: it ends after %s", k.key, took)
		}
		text, err := exec.Command(binary.Path(t), "check", "--connect", filepath.Join(sub, "p.yaml")).CombinedOutput()
		if err == nil || !strings.Contains(string(text), "no permission") || !strings.Contains(string(text), k.want) {
			t.Errorf("check: %v\n%s", err, text)
		}
		if strings.Contains(string(text)+p.output(), k.secret) && k.secret != "wrong" { // a word of the texts
			t.Errorf("the secret is in\n%s\n%s", text, p.output())
		}
	}
	// The sink's keys are wrong: what was read waits.
	put(t, from, in, 10)
	p := start(t, filepath.Join(dir, "sink"), strings.Replace(yaml("worker", "secret-of-worker"), "secret-of-d", "forgotten", 1))
	await(t, 20*time.Second, "the sink's reason", func() bool { return strings.Contains(p.output(), "check signature failed") })
	p.kill()
	for _, q := range route.Read {
		if n, _, err := from.Client.Offset(t.Context(), from.Brokers[0], group, q); n != 50 || err != nil {
			t.Errorf("offset %d of %v: %v", n, q, err)
		}
	}
}
