package rocketmq

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/internal/rocketmq"
)

// elastic sends a request to Elasticsearch and reads its answer into out.
func elastic(t testing.TB, method, url, body string, out any) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %v %.300s", method, url, res.Status, err, text)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			t.Fatal(err)
		}
	}
}

// documents reads all messages of an index.
func documents(t testing.TB, es, index, topic string) (out []result) {
	elastic(t, "POST", es+"/"+index+"/_refresh", "", nil)
	var page struct {
		ID   string `json:"_scroll_id"`
		Hits struct {
			Hits []struct {
				Source struct {
					B, Message string
					Q          int
					O          int64
				} `json:"_source"`
			}
		}
	}
	elastic(t, "POST", es+"/"+index+"/_search?scroll=1m", `{"size": 10000, "sort": ["_doc"]}`, &page)
	for len(page.Hits.Hits) > 0 {
		for _, h := range page.Hits.Hits {
			out = append(out, result{rocketmq.Queue{Topic: topic, Broker: h.Source.B, ID: h.Source.Q}, h.Source.O, h.Source.Message})
		}
		id, err := json.Marshal(page.ID)
		if err != nil {
			t.Fatal(err)
		}
		page.Hits.Hits = nil
		elastic(t, "POST", es+"/_search/scroll", `{"scroll": "1m", "scroll_id": `+string(id)+`}`, &page)
	}
	return out
}
