package filter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func TestFilterAndDrop(t *testing.T) {
	for _, c := range []struct {
		cond, rec  string
		keep, drop bool // what filter keeps, what drop drops: not opposites, for NULL is neither
	}{
		{`status >= 500`, `{"status":503}`, true, true}, {`status >= 500`, `{"status":200}`, false, false}, {`status >= 500`, `{"status":null}`, false, false}, {`status >= 500`, `{}`, false, false},
		{`status >= 500`, `{"status":"503"}`, true, true}, {`status >= 500`, `{"status":"none"}`, false, false}, {`a.b = 'x'`, `{"a":{"b":"x"}}`, true, true}, {`a.b = 'x'`, `{"a":{"b":"y"}}`, false, false},
		{`status IS NULL`, `{}`, true, true}, {`NOT (status > 1)`, `{}`, false, false}, {`TRUE`, `{}`, true, true}, {`FALSE`, `{}`, false, false}, {`msg LIKE '%x%' OR status = 1`, `{"status":1}`, true, true},
	} {
		for kind, gone := range map[string]bool{"filter": !c.keep, "drop": c.drop} {
			s := steptest.New(t, kind+": "+c.cond, steptest.Options{})
			_, fail := s.One(t, c.rec)
			if (fail == "filtered") != gone || fail != "" && fail != "filtered" {
				t.Errorf("%s: %s on %s: %q", kind, c.cond, c.rec, fail)
			}
		}
	}
}

func TestLedger(t *testing.T) {
	s := steptest.New(t, `filter: n > 2`, steptest.Options{})
	var recs []string
	for i := range 6 {
		recs = append(recs, fmt.Sprintf(`{"n":%d}`, i))
	}
	b := s.Batch(t, recs...)
	b.Sel = append(b.Sel[:1], b.Sel[2:]...) // 1 is dead already
	s.Apply(b)
	if fmt.Sprint(b.Sel) != "[3 4 5]" || b.Filtered != 2 || len(b.Fails) != 0 {
		t.Errorf("%v, %d filtered", b.Sel, b.Filtered)
	}
	s.Apply(b)
	if len(b.Sel) != 3 || b.Filtered != 2 {
		t.Error("a second time")
	}
	if !s.Decl.Pure || len(s.Decl.ReadFields) != 1 {
		t.Errorf("%+v", s.Decl)
	}
}

func TestMistakes(t *testing.T) {
	for step, want := range map[string]string{
		`filter: status >=`: `filter: `, `drop: 'LOWR(a) = 1'`: `LOWER`, `filter: [a]`: `want an expression`, `filter: "'text'"`: ``,
	} {
		if _, err := steptest.Try(step, steptest.Options{}); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
}

func fill(s *steptest.S, n int) func(*record.Batch) {
	status, path := s.Table.Slot("status"), s.Table.Slot("path")
	return func(b *record.Batch) {
		for i := range n {
			v := b.PutString("/api/v2/orders")
			r := b.Add(record.Position{}, v)
			b.Set(r, path, v)
			b.Set(r, status, record.MakeInt(int64(200+i%5*100)))
		}
	}
}

func TestNoAllocs(t *testing.T) {
	s := steptest.New(t, `filter: status >= 500 AND path LIKE '/api/%'`, steptest.Options{})
	s.NoAllocs(t, fill(s, 100))
}

func BenchmarkFilter(b *testing.B) {
	s := steptest.New(b, `filter: status >= 500 AND path LIKE '/api/%'`, steptest.Options{})
	batch := record.NewBatch(s.Table)
	fill(s, 1000)(batch)
	all := append([]int32(nil), batch.Sel...)
	b.ReportAllocs()
	for b.Loop() {
		batch.Sel = append(batch.Sel[:0], all...)
		s.Apply(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/record")
}
