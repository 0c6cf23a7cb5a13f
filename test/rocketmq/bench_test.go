package rocketmq

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	mq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/rsetl/rsetl/test/services"
)

var benchMessages = flag.Int("bench-messages", 400_000, "messages of the benchmarks")

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
