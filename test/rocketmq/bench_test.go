package rocketmq

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	mq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/test/services"
)

var (
	benchMessages = flag.Int("bench-messages", 400_000, "messages of the benchmarks")
	benchBacklog  = flag.Int("backlog", 1_000_000, "messages that wait in BenchmarkBacklog")
)

// Run with -bench . -benchtime 1x -run '^$'.

// BenchmarkSource reads 200-byte messages from 8 queues on two brokers: rsetl into nothing, and RocketMQ's Go client in a bare loop that
// polls and drops.
func BenchmarkSource(b *testing.B) {
	c := services.RocketMQ(b)
	topic := c.Topic(b, 4)
	text := strings.Repeat("x", 190)
	n := *benchMessages
	produce(b, c, topic, 0, n, func(i int) string { return fmt.Sprintf("%010d%s", i, text) })
	b.Run("rsetl", func(b *testing.B) {
		for range b.N {
			dir := b.TempDir()
			begin := time.Now()
			p := start(b, dir, source(c, services.Unique("g"), topic, "")+"sinks: [{'null': {}}]\n", "--once")
			p.end(b)
			b.ReportMetric(float64(n)/time.Since(begin).Seconds(), "messages/s")
			b.ReportMetric(float64(p.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024, "MiB")
			text := p.output()
			if !strings.Contains(text, fmt.Sprintf("in %d ", n)) {
				b.Fatal(text)
			}
		}
	})
	b.Run("client", func(b *testing.B) {
		for range b.N {
			p, err := mq.NewPullConsumer(consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{c.NameServer})), consumer.WithGroupName(services.Unique("g")),
				consumer.WithInstance(services.Unique("i")), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithPullBatchSize(32))
			if err != nil {
				b.Fatal(err)
			}
			if err := p.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}); err != nil {
				b.Fatal(err)
			}
			begin := time.Now()
			if err := p.Start(); err != nil {
				b.Fatal(err)
			}
			for got := 0; got < n; {
				cr, err := p.Poll(context.Background(), time.Second)
				if err == nil {
					got += len(cr.GetMsgList())
				}
			}
			b.ReportMetric(float64(n)/time.Since(begin).Seconds(), "messages/s")
			p.Shutdown()
		}
	})
}

// BenchmarkSink sends 200-byte messages: rsetl from a file, by a key over all queues, and RocketMQ's Go client in batches of 100.
func BenchmarkSink(b *testing.B) {
	c := services.RocketMQ(b)
	n := *benchMessages
	text := strings.Repeat("x", 190)
	b.Run("rsetl", func(b *testing.B) {
		dir := b.TempDir()
		in := filepath.Join(dir, "in")
		f, err := os.Create(in)
		if err != nil {
			b.Fatal(err)
		}
		var buf strings.Builder
		for i := range n {
			fmt.Fprintf(&buf, "%010d%s\n", i, text)
		}
		f.WriteString(buf.String())
		f.Close()
		for i := range b.N {
			topic := c.Topic(b, 4)
			begin := time.Now()
			once(b, filepath.Join(dir, fmt.Sprint(i)), "source: {file: {paths: ["+in+"], start: beginning}}\n"+sink(c, topic, ", body: '%{message}', sharding_key: '%{@offset}'"))
			b.ReportMetric(float64(n)/time.Since(begin).Seconds(), "messages/s")
			if _, ends := offsets(b, c, "rsetl_none", topic); ends != int64(n) {
				b.Fatal(ends)
			}
		}
	})
	b.Run("client", func(b *testing.B) {
		for range b.N {
			topic := c.Topic(b, 4)
			begin := time.Now()
			produce(b, c, topic, 0, n, func(i int) string { return fmt.Sprintf("%010d%s", i, text) })
			b.ReportMetric(float64(n)/time.Since(begin).Seconds(), "messages/s")
		}
	})
}

// BenchmarkBacklog reads what has been waiting, of small messages, at a broker whose data is gone afterwards: the process stays under 128 MiB,
// however many they are.
func BenchmarkBacklog(b *testing.B) {
	c := services.RocketMQ(b).Secured(b, "c")
	topic := c.Topic(b, 8)
	n := *benchBacklog
	fill(b, c, topic, n)
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) { // the broker's index of the queues comes later
		if _, ends := offsets(b, c, "rsetl_none", topic); ends == int64(n) {
			break
		} else if time.Now().After(end) {
			b.Fatal(ends)
		}
	}
	for _, sink := range []string{"'null': {}", "file: {path: OUT}"} {
		b.Run(strings.Trim(strings.Split(sink, ":")[0], "'"), func(b *testing.B) {
			for range b.N {
				dir := b.TempDir()
				yaml := strings.Replace(source(c, services.Unique("g"), topic, ""), "group:", "access_key: key-c, secret_key: secret-of-c, group:", 1)
				begin := time.Now()
				p := start(b, dir, yaml+"sinks: [{"+strings.Replace(sink, "OUT", filepath.Join(dir, "out"), 1)+"}]\n", "--once")
				peak := 0
				for over := false; !over; {
					select {
					case <-p.done:
						over = true
					case <-time.After(100 * time.Millisecond):
						peak = max(peak, resident(p.cmd.Process.Pid))
					}
				}
				took := time.Since(begin)
				text := p.output()
				if p.err != nil || !strings.Contains(text, fmt.Sprintf("in %d ", n)) {
					b.Fatal(p.err, text)
				}
				b.ReportMetric(float64(n)/took.Seconds(), "messages/s")
				b.ReportMetric(float64(peak)/(1<<20), "MiB")
				if peak > 128<<20 {
					b.Errorf("%d MiB with %d messages waiting", peak>>20, n)
				}
			}
		})
	}
}

// resident is the memory that a process has, in bytes; 0 where it is gone.
func resident(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	var size, pages int
	if _, err2 := fmt.Sscan(string(text), &size, &pages); err != nil || err2 != nil {
		return 0
	}
	return pages * os.Getpagesize()
}

// fill sends n small messages, in long batches to all queues at a time.
func fill(b *testing.B, c *services.Cluster, topic string, n int) {
	r := c.Route(b, topic, 8)
	var wg sync.WaitGroup
	for i, q := range r.Write {
		wg.Go(func() {
			const size = 4000
			var batch []byte
			for at := i; at < n; at += len(r.Write) {
				batch = rocketmq.AppendInner(batch, 0, fmt.Appendf(nil, "small message %d", at), nil)
				if at+len(r.Write) < n && len(batch) < size*40 {
					continue
				}
				for try := 0; ; try++ {
					err := c.Client.SendBatch(b.Context(), r.Masters[q.Broker], q, batch)
					if err == nil {
						break
					}
					if try == 100 {
						b.Error(err)
						return
					}
					time.Sleep(100 * time.Millisecond) // the broker is busy
				}
				batch = batch[:0]
			}
		})
	}
	wg.Wait()
}
