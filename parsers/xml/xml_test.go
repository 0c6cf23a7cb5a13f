package xml

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestXML(t *testing.T) {
	f := func(options, in, want string) {
		t.Helper()
		s := steptest.New(t, "xml: {field: m, target: f"+options+"}", steptest.Options{})
		q, _ := json.Marshal(in)
		s.Want(t, `{"m":`+string(q)+`}`, `{"m":`+string(q)+`,"f":`+want+`}`)
	}
	f("", `<e id="7"><a>1</a><b> x &amp; y </b><b>z</b><c n="1">t</c><d/></e>`, `{"id":"7","a":"1","b":["x & y","z"],"c":{"n":"1","content":"t"},"d":""}`)
	f(", force_array: true, suppress_empty: true", `<e id="7"><a>1</a><d/></e>`, `{"id":"7","a":["1"]}`)
	f("", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<!-- c --><s:e xmlns:s=\"u\" xmlns=\"v\" s:k=\"w\"><s:a><![CDATA[<x>]]></s:a></s:e>\n", `{"k":"w","a":"<x>"}`)
	f("", `<Event><System><EventID>4624</EventID></System><Data Name="a">1</Data><Data Name="b">2</Data></Event>`, `{"System":{"EventID":"4624"},"Data":[{"Name":"a","content":"1"},{"Name":"b","content":"2"}]}`)
	f("", `<e>only text</e>`, `{"content":"only text"}`)
	var many strings.Builder
	for i := range 40 {
		many.WriteString("<k" + string(rune('a'+i%20)) + ">1</k" + string(rune('a'+i%20)) + ">")
	}
	s := steptest.New(t, "xml: {field: m, target: f}", steptest.Options{})
	if out, fail := s.One(t, `{"m":"<e>`+many.String()+`</e>"}`); fail != "" || strings.Count(out, `["1","1"]`) != 20 {
		t.Errorf("%s %s", out, fail)
	}
	for in, why := range map[string]string{"<a>": "unexpected EOF", "<a></b>": "element <a> closed by </b>", "": "no element", "text": "a text before the first element", "<a/><b/>": "a second root element <b>", "<a/>x": "a text behind", "<a>&x;</a>": "invalid character entity",
		`<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>`: "invalid character entity", strings.Repeat("<a>", 100): "deeper than max_depth", "<e>" + strings.Repeat("<a/>", 20000) + "</e>": "more than max_fields"} {
		q, _ := json.Marshal(in)
		s.WantFail(t, `{"m":`+string(q)+`}`, why)
	}
	if _, err := steptest.Try("xml: {field: m, target: x, store_xml: false}", steptest.Options{}); err == nil || !strings.Contains(err.Error(), "Logstash's name") {
		t.Error(err)
	}
}

// A megabyte of anything takes time in line with its length.
func TestHostile(t *testing.T) {
	s := steptest.New(t, "xml: {field: m, target: f}", steptest.Options{})
	for _, unit := range []string{"<a>", "<a/>", "<a b=\"c\">", "&amp;", "<!--", "<![CDATA[", "<"} {
		start := time.Now()
		q, _ := json.Marshal("<e>" + strings.Repeat(unit, 1_000_000/len(unit)))
		s.One(t, `{"m":`+string(q)+`}`)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%q: %s", unit, d)
		}
	}
}

func FuzzXML(f *testing.F) {
	for _, s := range []string{`<a b="c"><d>e</d></a>`, `<?xml?><a/>`, `<a><![CDATA[`, `<!DOCTYPE a><a>&lt;</a>`} {
		f.Add(s)
	}
	s := steptest.New(f, "xml: {field: m, target: f, max_depth: 20, max_fields: 200}", steptest.Options{})
	f.Fuzz(func(t *testing.T, in string) {
		q, _ := json.Marshal(in)
		s.One(t, `{"m":`+string(q)+`}`)
	})
}
