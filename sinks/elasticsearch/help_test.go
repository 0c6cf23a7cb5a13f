package elasticsearch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks/sinktest"
	"github.com/rsetl/rsetl/test/services"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	ctx   = context.Background()
	split = &record.Split{ID: "split-1", Path: "/a"}
)

// started builds and starts a sink on a host; keys are those beside it.
func started(t testing.TB, host, keys string, p sinktest.Plan) *sinktest.Built {
	t.Helper()
	return sinktest.Build(t, &Config{}, fmt.Sprintf("{hosts: [%q], %s}", host, keys), p).Start(t, true)
}

// index is the name of an index that is the test's own, removed at its end with all that begin with it.
func index(t testing.TB, host string) string {
	name := services.Unique("es")
	t.Cleanup(func() { call(t, "DELETE", host+"/"+name+"*", "") })
	return name
}

// call sends a request and gives the answer.
func call(t testing.TB, method, url, body string) map[string]any {
	t.Helper()
	req, err := http.NewRequest(method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	p, err := io.ReadAll(res.Body)
	var out map[string]any
	if err == nil && len(p) > 0 {
		err = json.Unmarshal(p, &out)
	}
	if err != nil {
		t.Fatal(method, url, err, string(p))
	}
	return out
}

// docs are the documents of the indexes that begin with name, by index/id.
func docs(t testing.TB, host, name string) map[string]string {
	t.Helper()
	call(t, "POST", host+"/"+name+"*/_refresh", "")
	out := map[string]string{}
	res := call(t, "GET", host+"/"+name+"*/_search?size=10000", "")
	hits, _ := res["hits"].(map[string]any)
	list, _ := hits["hits"].([]any)
	for _, h := range list {
		m := h.(map[string]any)
		src, _ := json.Marshal(m["_source"])
		out[fmt.Sprint(m["_index"], "/", m["_id"])] = string(src)
	}
	return out
}
