package lookup

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestLookup(t *testing.T) {
	dir := t.TempDir()
	csv, obj, arr, single := filepath.Join(dir, "h.csv"), filepath.Join(dir, "o.json"), filepath.Join(dir, "a.json"), filepath.Join(dir, "s.json")
	put(t, csv, "\ufeffid,name,team,\"the room\"\n1,web1,red,\"4,2\"\n2,WEB2,blue,\n3,web1,green,7\n")
	put(t, obj, `{"web1":{"team":"red","floor":4,"tags":["a",1],"geo":{"lat":1.5},"x":null},"9":{"team":true}}`)
	put(t, arr, `[{"code":404,"text":"not there","code2":1},{"code":"x","text":"y"}]`)
	put(t, single, `{"a":"one","b":2}`)
	f := func(options, in, want string) {
		t.Helper()
		steptest.New(t, "lookup: {field: f, "+options+"}", steptest.Options{}).Want(t, in, want)
	}
	f("target: o, key: name, file: "+csv, `{"f":"web1","o":"old"}`, `{"f":"web1","o":{"id":"3","team":"green","the room":"7"}}`)
	f("key: name, fields: [team], file: "+csv, `{"f":"WEB2","team":"old"}`, `{"f":"WEB2","team":"blue"}`)
	f("key: name, fields: [team], ignore_case: true, file: "+csv, `{"f":"Web2"}`, `{"f":"Web2","team":"blue"}`)
	f("fields: [team], file: "+csv, `{"f":2}`, `{"f":2,"team":"blue"}`)
	f("target: o, file: "+csv, `{"f":"nope","o":1}`, `{"f":"nope","o":1}`)
	f("target: o, default: none, file: "+csv, `{"f":"nope","o.x":1}`, `{"f":"nope","o":"none"}`)
	f("target: o, default: none, file: "+csv, `{}`, `{"o":"none"}`)
	f("target: o, file: "+obj, `{"f":"web1"}`, `{"f":"web1","o":{"team":"red","floor":4,"tags":["a",1],"geo":{"lat":1.5},"x":null}}`)
	f("file: "+obj, `{"f":9}`, `{"f":9,"team":true}`)
	f("target: o, key: code, fields: [text], file: "+arr, `{"f":404}`, `{"f":404,"o":{"text":"not there"}}`)
	f("target: o, file: "+single, `{"f":"b","o.x":1}`, `{"f":"b","o":2}`)
	f("target: o, dictionary: {'200': fine, a: b}", `{"f":200}`, `{"f":200,"o":"fine"}`)
	s := steptest.New(t, "lookup: {field: f, missing: fail, target: o, dictionary: {a: b}}", steptest.Options{})
	s.WantFail(t, `{"f":"x"}`, `the table has nothing for "x"`)
	for content, why := range map[string]string{"": "it is empty", "a,b\n1,2,3\n": "wrong number of fields", "a,b\n\"1,2\n": "extraneous or missing"} {
		put(t, csv, content)
		steptest.New(t, "lookup: {field: f, file: "+csv+"}", steptest.Options{}).WantFail(t, `{"f":"x"}`, why)
	}
	for content, why := range map[string]string{`{"a":"b"}`: "single values need a target", `[{"a":1}]`: "key is missing", `5`: "an object or an array", `{"a":{}}x`: "something follows", `{"a":`: "EOF", `{"a":` + strings.Repeat("[", 1000): "nested too deeply"} {
		put(t, obj, content)
		steptest.New(t, "lookup: {field: f, file: "+obj+"}", steptest.Options{}).WantFail(t, `{"f":"x"}`, why)
	}
	put(t, csv, "a,b\n"+strings.Repeat("x", 2000)+",1\n")
	steptest.New(t, "lookup: {field: f, max_size: 1KiB, file: "+csv+"}", steptest.Options{}).WantFail(t, `{"f":"x"}`, "more than max_size")
	steptest.New(t, "lookup: {field: f, file: /no/such.csv}", steptest.Options{}).WantFail(t, `{"f":"x"}`, "no such file")
	for step, want := range map[string]string{"lookup: {field: f}": "want one of file and dictionary", "lookup: {field: f, file: x.txt}": "ends in .csv", "lookup: {field: f, dictionary: {a: b}}": `"target" is missing`, "lookup: {field: f, dictionary_path: x}": "here it is `file`", "lookup: {field: f, file: x.csv, missing: x}": "keep"} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", step, err)
		}
	}
}

// A file that changes is taken whole.
func TestChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	put(t, path, "k,v\na,1\n")
	s := steptest.New(t, "lookup: {field: f, target: o, refresh: 1s, file: "+path+"}", steptest.Options{})
	s.Want(t, `{"f":"a"}`, `{"f":"a","o":{"v":"1"}}`)
	put(t, path, "k,v,w\na,2,3\n")
	for end := time.Now().Add(20 * time.Second); ; {
		out, _ := s.One(t, `{"f":"a"}`)
		if steptest.SameJSON(out, `{"f":"a","o":{"v":"2","w":"3"}}`) {
			break
		}
		if !steptest.SameJSON(out, `{"f":"a","o":{"v":"1"}}`) || time.Now().After(end) {
			t.Fatal(out)
		}
	}
}

func TestNoAllocs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	put(t, path, "k,v\na,1\n")
	s := steptest.New(t, "lookup: {field: f, target: o, file: "+path+"}", steptest.Options{})
	slot := s.Table.Slot("f")
	s.NoAllocs(t, func(b *record.Batch) {
		for range 20 {
			v := b.PutString("a")
			b.Set(b.Add(record.Position{}, v), slot, v)
		}
	})
}

func FuzzTable(f *testing.F) {
	f.Add("csv", "a,b\n1,2\n")
	f.Add("json", `{"a":{"b":[1,{"c":null}]}}`)
	f.Add("json", `[{"k":1.5,"v":12345678901234567890}]`)
	f.Fuzz(func(t *testing.T, format, data string) {
		k := &Config{Key: "k", Separator: ","}
		k.Target.Name = "t"
		if tab, err := k.parse(format, []byte(data)); err == nil {
			b := record.NewBatch(record.NewTable())
			for _, at := range tab.rows.at {
				key, _ := text(tab.rows.data[at:])
				row, ok := tab.rows.get(key)
				if !ok {
					t.Fatalf("%q is not found", key)
				}
				vs, err := record.DecodeValues(b, row.values, row.n, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range vs {
					b.AppendJSON(nil, v)
				}
			}
		}
	})
}

// TestManyRows: each of many rows is found, the last of those with one key counts, and memory is about the file's.
func TestManyRows(t *testing.T) {
	const n = 300_000
	var text strings.Builder
	text.WriteString("id,name,team\n")
	for i := range n {
		fmt.Fprintf(&text, "%d,name of %d,team %d\n", i, i, i%7)
	}
	text.WriteString("77,another,x\n")
	size := text.Len()
	k := &Config{Separator: ","}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	data := []byte(text.String())
	before := heap()
	tab, err := k.parse("csv", data)
	if err != nil {
		t.Fatal(err)
	}
	if used := heap() - before; used > 3*int64(size) {
		t.Errorf("%d bytes for a file of %d", used, size)
	}
	b := record.NewBatch(record.NewTable())
	for _, i := range []int{0, 1, 76, 77, 4711, n - 1} {
		row, ok := tab.rows.get([]byte(fmt.Sprint(i)))
		if !ok {
			t.Fatalf("%d is not found", i)
		}
		vs, err := record.DecodeValues(b, row.values, row.n, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("name of %d, team %d", i, i%7)
		if i == 77 {
			want = "another, x"
		}
		if got := string(b.Bytes(vs[0])) + ", " + string(b.Bytes(vs[1])); got != want {
			t.Errorf("%d: %s", i, got)
		}
	}
	if _, ok := tab.rows.get([]byte(fmt.Sprint(n))); ok {
		t.Error("one more is found")
	}
	runtime.KeepAlive(data)
}

func BenchmarkLookup(b *testing.B) {
	path := filepath.Join(b.TempDir(), "t.csv")
	var text strings.Builder
	text.WriteString("id,name,team\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "%d,name of %d,team %d\n", i, i, i%7)
	}
	put(b, path, text.String())
	s := steptest.New(b, "lookup: {field: f, target: o, file: "+path+"}", steptest.Options{})
	slot := s.Table.Slot("f")
	st, batch := s.Maker(), record.NewBatch(s.Table)
	for b.Loop() {
		batch.Reset()
		for i := range 100 {
			v := batch.PutString(strconv.Itoa(i * 97))
			batch.Set(batch.Add(record.Position{}, v), slot, v)
		}
		st.Apply(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/record")
}
