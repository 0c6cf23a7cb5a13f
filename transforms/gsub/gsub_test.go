package gsub

import (
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestGsub(t *testing.T) {
	for _, c := range []struct{ step, in, want string }{
		{`[s, '(\w+) (\w+)', '\2 \1']`, `{"s":"Hello World"}`, `{"s":"World Hello"}`}, {`[s, '[aeiou]', '']`, `{"s":"Hello"}`, `{"s":"Hll"}`}, {`[s, '^', '>']`, `{"s":"a\nb"}`, `{"s":">a\n>b"}`}, {`[s, 'H', '\\']`, `{"s":"Hi"}`, `{"s":"\\i"}`},
		{`[s, '%{n}', 'N%{n}']`, `{"s":"5 5","n":5}`, `{"s":"N5 N5","n":5}`}, {`[s, x, y, s, y, z]`, `{"s":"x"}`, `{"s":"z"}`}, {`[a, x, z]`, `{"a":["x","Y",3,null]}`, `{"a":["z","Y",3,null]}`}, {`[s, x, z]`, `{"s":5}`, `{"s":5}`}, {`[s, x, z]`, `{}`, `{}`},
		{`[s, '(?<y>\d+)-(?<m>\d+)', '\k<m>/\k<y>']`, `{"s":"2024-05"}`, `{"s":"05/2024"}`}, {`[s, 'a(?=b)', 'x']`, `{"s":"ab ac"}`, `{"s":"xb ac"}`}, {`[s, '(a)|b', '[\1]']`, `{"s":"ab"}`, `{"s":"[a][]"}`}, {`[[s, x, y], [t, x, z]]`, `{"s":"x","t":"x"}`, `{"s":"y","t":"z"}`},
	} {
		steptest.New(t, "gsub: "+c.step, steptest.Options{}).Want(t, c.in, c.want)
	}
	for step, want := range map[string]string{"gsub: [a, b]": "three by three", "gsub: [a, '(', c]": "missing closing )", "gsub: {a: b}": "want a list"} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
	slow := steptest.New(t, `gsub: [s, '(?=(x+x+)+y)', '']`, steptest.Options{})
	start := time.Now()
	slow.WantFail(t, `{"s":"`+strings.Repeat("x", 60)+`"}`, "takes too long")
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("%s", d)
	}
}

func FuzzReplacement(f *testing.F) {
	f.Add(`a(b)?c`, "xabcac", `\1-\0\k<n>\\`)
	f.Fuzz(func(t *testing.T, re, text, with string) {
		r, err := compile(re)
		if err != nil || r.re == nil {
			return
		}
		if _, _, err := r.replace(nil, []byte(text), parseReplacement([]byte(with))); err != nil {
			t.Fatal(err)
		}
	})
}
