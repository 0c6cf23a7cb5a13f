package elasticsearch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks/sinktest"
	"github.com/rsetl/rsetl/test/services"
)

func equal(t *testing.T, got, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s is %q, want %q", k, got[k], v)
		}
	}
	for k, v := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s is there: %s", k, v)
		}
	}
}

// TestOnce delivers the same records again, as after a crash, and some new ones.
func TestOnce(t *testing.T) {
	host := services.Elasticsearch(t)
	name := index(t, host)
	s := started(t, host, "index: "+name, sinktest.Plan{Fields: "n BIGINT, a.b STRING", Open: true})
	for round := range 2 {
		r := s.Send(ctx, s.Part(t, split, 1, `{"n": 1, "a.b": "é\"\\\n", "x": [1, 2]}`, `{"n": 2}`), s.Part(t, &record.Split{ID: "other"}, 1, `{"n": 3}`))
		if r.Err != nil || r.Rejects != nil || r.Skipped != 3*round {
			t.Fatalf("%+v", r)
		}
	}
	r := s.Send(ctx, s.Part(t, split, 2, `{"n": 2}`, `{"n": 4}`), s.Part(t, &record.Split{ID: split.ID, Epoch: 1}, 1, `{"n": 5}`))
	if r.Err != nil || r.Rejects != nil || r.Skipped != 1 {
		t.Fatalf("%+v", r)
	}
	var n []string
	for id, d := range docs(t, host, name) {
		n = append(n, d)
		if len(id) > len(name)+40 {
			t.Errorf("a long id: %s", id)
		}
	}
	if len(n) != 5 || !strings.Contains(strings.Join(n, ""), `{"a":{"b":"é\"\\\n"},"n":1,"x":[1,2]}`) {
		t.Error(n)
	}
}

// TestOutbox: the numbers of an outbox begin anew with the state. What has the same number is another firing then, and the same
// firing sent again is no other.
func TestOutbox(t *testing.T) {
	host := services.Elasticsearch(t)
	name := index(t, host)
	s := started(t, host, "index: "+name, sinktest.Plan{Fields: "n BIGINT"})
	for _, c := range []struct {
		recs    []string
		skipped int
	}{{[]string{`{"n": 1}`, `{"n": 2}`}, 0}, {[]string{`{"n": 1}`, `{"n": 3}`}, 1}, {[]string{`{"n": 1}`, `{"n": 3}`}, 2}} {
		if r := s.Send(ctx, s.Part(t, &record.Split{ID: "outbox:s"}, 1, c.recs...)); r.Err != nil || r.Rejects != nil || r.Skipped != c.skipped {
			t.Errorf("%v: %+v", c.recs, r)
		}
	}
	if got := docs(t, host, name); len(got) != 3 {
		t.Error(got)
	}
}

// TestPoison is a bulk with duplicates, documents that don't fit the mapping, and good ones.
func TestPoison(t *testing.T) {
	host := services.Elasticsearch(t)
	name := index(t, host)
	call(t, "PUT", host+"/"+name, `{"mappings": {"properties": {"n": {"type": "long"}, "labels": {"properties": {"app": {"type": "keyword"}}}}}}`)
	s := started(t, host, "op: create, id: '%{id}', index: "+name, sinktest.Plan{Fields: "id STRING, n", Open: true})
	r := s.Send(ctx, s.Part(t, split, 1, `{"id": "a", "n": 1}`, `{"id": "b", "n": "one"}`, `{"id": "a", "n": 2}`, `{"id": "c", "labels.app": {"name": "x"}}`, `{"id": "d", "labels.app": "x"}`))
	if r.Err != nil || r.Skipped != 1 || len(r.Rejects) != 2 ||
		!strings.HasPrefix(r.Rejects[0], "0/1: 400 mapper_parsing_exception: failed to parse field [n] of type [long]") || !strings.Contains(r.Rejects[0], `For input string: "one"`) ||
		!strings.HasPrefix(r.Rejects[1], "0/3: 400 mapper_parsing_exception: failed to parse field [labels.app]") {
		t.Fatalf("%+v", r)
	}
	equal(t, docs(t, host, name), map[string]string{name + "/a": `{"id":"a","n":1}`, name + "/d": `{"id":"d","labels":{"app":"x"}}`})
}

func TestOps(t *testing.T) {
	host := services.Elasticsearch(t)
	name := index(t, host)
	plan := sinktest.Plan{Fields: "id STRING, n BIGINT, v BIGINT", Open: true}
	s := started(t, host, "id: '%{id}', index: "+name, plan)
	if r := s.Send(ctx, s.Part(t, split, 1, `{"id": "a", "n": 1}`, `{"id": "a", "n": 2}`, `{"id": "é \"/\\", "n": 3}`)); r.Err != nil || r.Rejects != nil || r.Skipped != 0 {
		t.Fatalf("index: %+v", r)
	}
	s = started(t, host, "op: update, id: '%{id}', index: "+name, plan)
	if r := s.Send(ctx, s.Part(t, split, 1, `{"id": "a", "v": 7}`, `{"id": "new", "n": 1}`, `{"id": "new", "v": 1}`)); r.Err != nil || r.Rejects != nil || r.Skipped != 0 {
		t.Fatalf("update: %+v", r)
	}
	s = started(t, host, "version: v, id: 'v%{id}', index: "+name, plan)
	if r := s.Send(ctx, s.Part(t, split, 1, `{"id": "a", "v": 7}`, `{"id": "a", "v": 6, "n": 1}`, `{"id": "a", "v": 7, "n": 2}`, `{"id": "b", "v": 1}`)); r.Err != nil || r.Rejects != nil || r.Skipped != 1 {
		t.Fatalf("version: %+v", r)
	}
	equal(t, docs(t, host, name), map[string]string{
		name + "/a": `{"id":"a","n":2,"v":7}`, name + `/é "/\`: `{"id":"é \"/\\","n":3}`, name + "/new": `{"id":"new","n":1,"v":1}`,
		name + "/va": `{"id":"a","n":2,"v":7}`, name + "/vb": `{"id":"b","v":1}`})
}

// TestTemplates: the index of the day, a missing field, ids that can't be.
func TestTemplates(t *testing.T) {
	host := services.Elasticsearch(t)
	name := index(t, host)
	s := started(t, host, "gzip: true, routing: '%{k}', id: '%{k}', index: '"+name+"-%{+yyyy.MM.dd}'", sinktest.Plan{Fields: "@timestamp TIMESTAMP, k STRING"})
	b := record.NewBatch(s.Table)
	encode := func(k record.Value, at record.Value) ([]byte, error) {
		i := b.Add(record.Position{}, record.Value{})
		b.Set(i, 0, at)
		b.Set(i, 1, k)
		return s.Encode(nil, b, i)
	}
	day := record.MakeTime(1772000000, 0, 0)
	row, err := encode(b.PutString("x"), day)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string][2]record.Value{"it is empty": {b.PutString(""), day}, "missing or NULL": {record.MakeNull(), day}, "index: a field": {b.PutString("x"), record.Value{}}, "more than the 512": {b.PutString(strings.Repeat("x", 513)), day}} {
		if _, err := encode(c[0], c[1]); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	p := s.Part(t, split, 1)
	p.Data, p.Ends, p.Pos = row, []int{len(row)}, []record.Position{{}}
	if r := s.Send(ctx, p); r.Err != nil || r.Rejects != nil {
		t.Fatalf("%+v", r)
	}
	equal(t, docs(t, host, name), map[string]string{name + "-2026.02.25/x": `{"@timestamp":"2026-02-25T06:13:20Z","k":"x"}`})
}

func TestPipeline(t *testing.T) {
	host := services.Elasticsearch(t)
	name := index(t, host)
	call(t, "PUT", host+"/_ingest/pipeline/"+name, `{"processors": []}`)
	t.Cleanup(func() { call(t, "DELETE", host+"/_ingest/pipeline/"+name, "") })
	s := started(t, host, fmt.Sprintf("pipeline: '%%{p}', index: %s, id: '%%{n}'", name), sinktest.Plan{Fields: "n BIGINT, p STRING"})
	if r := s.Send(ctx, s.Part(t, split, 1, fmt.Sprintf(`{"n": 1, "p": %q}`, name))); r.Err != nil || r.Rejects != nil {
		t.Fatalf("%+v", r)
	}
	equal(t, docs(t, host, name), map[string]string{name + "/1": fmt.Sprintf(`{"n":1,"p":%q}`, name)})
	// A pipeline that isn't there is no fault of the documents: it may be made yet.
	if r := s.Send(ctx, s.Part(t, split, 9, `{"n": 9, "p": "none"}`)); r.Err == nil || !strings.Contains(r.Err.Error(), "pipeline with id [none] does not exist") {
		t.Errorf("%+v", r)
	}
}

// TestRequestRefused: one item makes Elasticsearch refuse the whole request. The others go in.
func TestRequestRefused(t *testing.T) {
	host := services.Elasticsearch(t)
	name := index(t, host)
	s := started(t, host, "index: "+name, sinktest.Plan{Fields: "n BIGINT"})
	p := s.Part(t, split, 1)
	for i := range 20 {
		row := fmt.Sprintf("{\"create\":{\"_index\":%q,\"_id\":\"%d\"}}\n{\"n\":%d}\n", name, i, i)
		if i == 13 {
			row = fmt.Sprintf("{\"create\":{\"_index\":%q,\"_id\":%q}}\n{\"n\":13}\n", name, strings.Repeat("x", 600))
		}
		p.Data = append(p.Data, row...)
		p.Ends = append(p.Ends, len(p.Data))
		p.Pos = append(p.Pos, record.Position{Offset: int64(i)})
	}
	r := s.Send(ctx, p)
	if r.Err != nil || len(r.Rejects) != 1 || !strings.HasPrefix(r.Rejects[0], "0/13: the request with this document alone: 400 ") || !strings.Contains(r.Rejects[0], "512") {
		t.Fatalf("%+v", r)
	}
	if n := len(docs(t, host, name)); n != 19 {
		t.Errorf("%d documents", n)
	}
}
