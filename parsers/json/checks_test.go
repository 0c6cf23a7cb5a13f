package json

import (
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestEventChecks(t *testing.T) {
	s := steptest.New(t, "json: {field: m, event_checks: true}", steptest.Options{})
	s.Want(t, `{"m":"{\"@timestamp\":\"2024-01-01T00:00:00Z\",\"tags\":\"x\"}"}`, `{"m":"{\"@timestamp\":\"2024-01-01T00:00:00Z\",\"tags\":\"x\"}","@timestamp":"2024-01-01T00:00:00Z","tags":"x"}`)
	s.Want(t, `{"m":"{\"@timestamp\":\"foo\",\"tags\":[\"x\"]}"}`, `{"m":"{\"@timestamp\":\"foo\",\"tags\":[\"x\"]}","_@timestamp":"foo","tags":["x"]}`)
	s.WantFail(t, `{"m":"{\"tags\":5}"}`, "tags is no text")
	s.WantFail(t, `{"m":"{\"tags\":[\"x\",5]}"}`, "tags is no text")
	s = steptest.New(t, "json: m", steptest.Options{})
	s.Want(t, `{"m":"{\"[a][b]\":1,\"[c\":2,\"tags\":5,\"@timestamp\":1}"}`, `{"m":"{\"[a][b]\":1,\"[c\":2,\"tags\":5,\"@timestamp\":1}","a":{"b":1},"[c":2,"tags":5,"@timestamp":1}`)
}
