package sinktest

import (
	"syscall"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
)

// CPU is the time that this process has spent on all cores, and that of it in user mode.
func CPU(t testing.TB) (all, user time.Duration) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), time.Duration(u.Utime.Nano())
}

// AccessFields are the fields of Access: 15, as of an access log's record.
const AccessFields = "client STRING, ident STRING, method STRING, url STRING, version STRING, status BIGINT, bytes BIGINT, took DOUBLE, referrer STRING, agent STRING, " +
	"host STRING, ok BOOLEAN, zone STRING, id BIGINT, @timestamp TIMESTAMP"

// AccessRow adds one such record to b, whose table begins with AccessFields.
func AccessRow(b *record.Batch, n int64) int {
	i := b.Add(record.Position{Offset: n}, record.Value{})
	for k, v := range []record.Value{
		b.PutString("203.0.113.9"), b.PutString("-"), b.PutString("GET"), b.PutString("/static/img/logo-large.png?v=17&lang=en"), b.PutString("1.1"),
		record.MakeInt(200 + n%300), record.MakeInt(n * 31 % 100_000), record.MakeFloat(float64(n%1000) / 8), b.PutString("https://shop.example.com/cart"),
		b.PutString("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0 Safari/537.36"),
		b.PutString("web-07.example.com"), record.MakeBool(n%2 == 0), b.PutString("eu-central-1b"), record.MakeInt(n), record.MakeTime(1772000000+n%3600, uint32(n%1000)*1_000_000, 3),
	} {
		b.Set(i, k, v)
	}
	return i
}
