package pipeline

import (
	"context"
	"testing"
	"time"
)

// TestBudget: bytes and batches both bound what is let in; what is larger than all comes in alone.
func TestBudget(t *testing.T) {
	b := newBudget(100, 2)
	try := func(n int) bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		return b.acquire(ctx, n) == nil
	}
	if !try(10) || !try(20) {
		t.Fatal("two batches don't get in")
	}
	if try(30) {
		t.Error("a third batch gets in")
	}
	if !try(0) {
		t.Error("a batch of no bytes must always get in")
	}
	b.release(20)
	if try(91) {
		t.Error("more bytes than are free get in")
	}
	done := make(chan error)
	go func() { done <- b.acquire(t.Context(), 500) }()
	time.Sleep(time.Millisecond)
	b.release(10)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if try(1) {
		t.Error("something gets in beside what is larger than all")
	}
	b.release(500)
	if !try(100) {
		t.Error("not all came back")
	}
}
