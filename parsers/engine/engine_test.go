package engine

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// match runs one engine. The result is the text of the match and of each group, "-" for one that took no part.
func match(t testing.TB, src, engine, text string) (got []string, ok bool) {
	t.Helper()
	tr, err := translate(src, engine == "regexp2")
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	r := &Regex{Source: src, Groups: tr.groups}
	switch engine {
	case "regexp2":
		err = r.useRegexp2(tr.text, "")
	case "regexp":
		err = r.useRegexp(tr.text)
	default:
		r, err = Compile(src)
		if err == nil {
			if r.native == nil {
				t.Fatalf("%s runs on %s", src, r.Engine)
			}
			r.make = func() Matcher { return newPath(r.native, engine) }
		}
	}
	if err != nil {
		t.Fatalf("%s became %s, which %s refuses: %v", src, tr.text, engine, err)
	}
	caps := make([]int, 2*(r.Groups+1))
	found, err := r.Matcher().Match([]byte(text), caps)
	if err != nil {
		t.Fatalf("%s on %q: %v", src, text, err)
	}
	if !found {
		return nil, false
	}
	for i := 0; i < len(caps); i += 2 {
		if caps[i] < 0 {
			got = append(got, "-")
		} else {
			got = append(got, text[caps[i]:caps[i+1]])
		}
	}
	return got, true
}

// corpus: the match and its groups, joined with "|"; "!" where there is none. Both engines run all that regexp has.
var corpus = []struct{ src, text, want string }{
	{`a`, "bab", "a"}, {``, "x", ""}, {`a|b`, "b", "b"}, {`(a)|(b)`, "b", "b|-|b"}, {`(a)(b)?`, "a", "a|a|-"}, {`x*`, "aaa", ""}, {`(x*)`, "aaa", "|"},
	// lines
	{`^b$`, "a\nb\nc", "b"}, {`\Ab`, "a\nb", "!"}, {`\Aa`, "a\nb", "a"}, {`b\z`, "a\nb", "b"}, {`a.b`, "a\nb", "a\nb"}, {`(?-m)a.b`, "a\nb", "!"}, {`(?-m:a.)b|c`, "a\nb", "!"},
	{`b\z`, "b\n", "!"}, {`b\Z`, "b\nx", "!"}, {`b\Z`, "b", "b"}, {`(b\Z)`, "b\n", "b|b"}, {`a\Rb`, "a\r\nb", "a\r\nb"}, {`a\R`, "a\u2028", "a\u2028"}, {`a\Nb`, "a\nb", "!"},
	// groups
	{`(?<a.b>x)(?P<c>y)(?'d'z)`, "xyz", "xyz|x|y|z"}, {`(?:a|b)c`, "bc", "bc"}, {`(?#c(omment)a`, "a", "a"}, {`((a)b)+`, "abab", "abab|ab|a"}, {`(?:(a)|b)*`, "ab", "ab|a"},
	{`(?>a+)b`, "aab", "aab"}, {`(?>a+)ab`, "aab", "!"}, {`(?>a|ab)c`, "abc", "!"}, {`(?=ab)a`, "ab", "a"}, {`a(?!b)`, "abac", "a"}, {`(?<=x)a`, "axa", "a"}, {`(?<!x)a`, "xaa", "a"},
	{`(?<q>["'])(.*?)\k<q>`, `say "it's" x`, `"it's"|"|it's`}, {`(?<n>a)(?<m>b)\k<m>\k<n>1`, "abba1", "abba1|a|b"}, {`(?<n>a)\k<n>2`, "aa2", "aa2|a"},
	// what is known by its text, or proven not to matter
	{quoted, `x "a\"b" 'c'`, `"a\"b"`}, {quoted + "$", `"a" "b"`, `"b"`}, {quoted, `""`, `""`}, {quoted, `\"a" "b`, `" "`}, {quoted, "`é\n`", "`é\n`"}, {quoted + `x`, `"a"b"c"x`, `"c"x`}, {quoted, `"a\"`, "!"},
	{`(?=(?<m>.*))b(?<x>c?)`, "abc\nd", "bc|bc\nd|c"}, {`a|(?=(?<m>.*))b`, "ab", "a|-"}, {`(?!<[0-9])(?:[01]?[0-9]):`, "<1:", "1:"}, {`(?!ab)c|(?!cd)a`, "c", "c"}, {`(?!ab)a`, "abac", "a"}, {`(?!ab)x`, "abx", "x"},
	// options
	{`(?i)AbC`, "aBc", "aBc"}, {`(?i:a)b`, "AB", "!"}, {`a(?i)b`, "aB", "aB"}, {`(?i)a(?-i)b`, "AB", "!"}, {`(a(?i)b)c`, "aBC", "!"}, {`(?i)[a-c]+`, "AbC", "AbC"}, {`(?i)[^a]`, "Ab", "b"}, {`(?i-m:A.)`, "a\n", "!"},
	{`(?x) a b # comment (`, "ab", "ab"}, {"(?x)a # c\n b", "ab", "ab"}, {`(?x)(a b) c`, "abc", "abc|ab"}, {`((?x) a b) c`, "ab c", "ab c|ab"}, {`(?x:a b) c`, "ab c", "ab c"}, {`(?x)a\ b[ ]c`, "a b c", "a b c"}, {`(?-x) a`, " a", " a"}, {`a b#c`, "a b#c", "a b#c"}, {`(?mix) a . B`, "A\nb", "A\nb"},
	// quantifiers
	{`a{2}`, "aaa", "aa"}, {`a{2,}`, "aaa", "aaa"}, {`a{,2}`, "aaa", "aa"}, {`a{0,1}b`, "aab", "ab"}, {`a{2}?`, "aaa", "aa"}, {`a{1,2}?`, "aa", "a"}, {`a{x}`, "a{x}", "a{x}"}, {`a{`, "a{", "a{"}, {`{`, "{", "{"}, {`a{}`, "a{}", "a{}"}, {`a{,}`, "a{,}", "a{,}"}, {`}`, "}", "}"},
	{`a+?b`, "aab", "aab"}, {`a*?`, "aa", ""}, {`a??b`, "ab", "ab"}, {`(?:ab){2}`, "abab", "abab"}, {`a{2}{3}`, "aaaaaaa", "aaaaaa"}, {`a{2}+`, "aaaaa", "aaaa"}, {`(a|b){2}`, "ab", "ab|b"}, {`\d{3}`, "x123", "123"}, {`[ab]{2}c`, "abc", "abc"},
	{`a++b`, "aab", "aab"}, {`a++ab`, "aab", "!"}, {`a*+a`, "aa", "!"}, {`a?+a`, "a", "!"}, {`(ab)++b`, "ababb", "ababb|ab"}, {`[a-c]++c`, "abc", "!"}, {`x\d++9`, "x99", "!"}, {`"[^"]*+"`, `"ab"`, `"ab"`}, {`(?<a>a)*+b`, "aab", "aab|a"}, {`é++é`, "éé", "!"}, {`a?+{2}`, "aa", "aa"},
	{`((?:ab{1,2}){40,60}?)(?:c{50}){30}`, strings.Repeat("abb", 45) + strings.Repeat("c", 1501), strings.Repeat("abb", 45) + strings.Repeat("c", 1500) + "|" + strings.Repeat("abb", 45)}, {`(?:(a)|(b)){1001}`, strings.Repeat("ab", 501), strings.Repeat("ab", 500) + "a|a|b"},
	{`a{1200}`, strings.Repeat("a", 1200), strings.Repeat("a", 1200)},
	// escapes
	{`\d\D\w\W\s\S`, "1xa! b", "1xa! b"}, {`\d`, "٣", "!"}, {`\w`, "é", "!"}, {`\W`, "é", "é"}, {`\s`, "\u00a0", "!"}, {`\s`, "\v", "!"}, {`\S`, "\v", "\v"}, {`\h+`, "xfFz", "fF"}, {`\H`, "fg", "g"},
	{`\bfoo\b`, "a foo.", "foo"}, {`\bfoo`, "xfoo", "!"}, {`\bfoo`, "éfoo", "foo"}, {`o\B`, "oo", "o"}, {`\Bb`, "éb", "!"}, {`\b`, "", "!"}, {`\B`, "", ""},
	{`\t\n\r\f\v\a\e`, "\t\n\r\f\v\a\x1b", "\t\n\r\f\v\a\x1b"}, {`\x41\x{1f600}\u20ac\u{41}`, "A😀€A", "A😀€A"}, {`\x9`, "\t", "\t"}, {`\101\0\x{00}\12`, "A\x00\x00\n", "A\x00\x00\n"}, {`\101\0`, "A\x00", "A\x00"},
	{`\.\-\/\:\"\'\ \#\!\%\&\,\;\<\=\>\@\_\~` + "\\`", ".-/:\"' #!%&,;<=>@_~`", ".-/:\"' #!%&,;<=>@_~`"}, {`\é`, "é", "é"}, {`\q\j`, "qj", "qj"}, {`\]\[\}\{\)\(`, "][}{)(", "][}{)("},
	{`\p{L}\P{L}\pN\p{^L}\p{Greek}`, "é1٣-α", "é1٣-α"}, {`\p{Alpha}+\p{^Space}`, "éé1", "éé1"}, {`\p{Any}`, "\n", "\n"},
	// classes
	{`[]a]+`, "x]a]", "]a]"}, {`[^]a]+`, "]xa", "x"}, {`[a-]+`, "x-a", "-a"}, {`[-a]+`, "x-a", "-a"}, {`[a\-z]+`, "mz-a", "z-a"}, {`[\w-]+`, "!a-b", "a-b"}, {`[\w-.]+`, "!a-.b", "a-.b"}, {`[+--]+`, "x+,-.", "+,-"}, {`[a-c-e]+`, "bd-e", "b"}, {`[%-a]`, "-", "-"},
	{`[\d.]+`, "x1.2", "1.2"}, {`[^\d\s]+`, "1 ab", "ab"}, {`[\D]+`, "12ab", "ab"}, {`[\W_]+`, "ab_-", "_-"}, {`[^\W_]+`, "-_ab", "ab"}, {`[\S]`, " é", "é"}, {`[\h]+`, "xaF", "aF"}, {`[\H]`, "aé", "é"}, {`[\b]`, "\b", "\b"}, {`[.*+?(){}|^$#]+`, ".*+?(){}|^$#", ".*+?(){}|^$#"}, {`[a^]+`, "^a", "^a"}, {`[\^a]+`, "^a", "^a"}, {`[\]\\]+`, `]\`, `]\`},
	{`[[:alpha:]]+`, "1éa2", "éa"}, {`[[:alpha:][:digit:]_]+`, "-é1_", "é1_"}, {`[[:^alpha:]]+`, "é12", "12"}, {`[^[:space:]]+`, " ab ", "ab"}, {`[^[:^digit:]]+`, "a12", "12"}, {`[[:punct:]]+`, "a!$~b", "!$~"}, {`[[:xdigit:]]`, "gF", "F"}, {`[[:upper:]]`, "aÉ", "É"}, {`[[:word:]]+`, "-é_1", "é_1"}, {`[:alpha:]+`, "xpa:", "pa:"},
	{`[a[bc]d]+`, "xabcd", "abcd"}, {`[a[^b]]+`, "ba1", "a1"}, {`[a-z&&[^aeiou]]+`, "aebc", "bc"}, {`[a-z&&b-f&&[^c]]+`, "acbd", "bd"}, {`[^a-z&&[b-y]]+`, "bza", "za"}, {`[&&a]x|y`, "ax y", "y"}, {`[a&b]+`, "x&a", "&a"}, {`[[a-c]&&[b-z]]+`, "abc", "bc"}, {`[a-[bc]]+`, "-abc", "-abc"},
	{`[é-ü]+`, "zêë", "êë"}, {`[\x41-\x43]+`, "zABC", "ABC"}, {`[\u0041-\x{43}]+`, "zABC", "ABC"}, {`[\p{L}\d]+`, "-é1", "é1"}, {`[\P{L}]+`, "a12", "12"}, {`[^\p{L}]+`, "a12", "12"}, {`[\p{^L}a]+`, "xa1", "a1"}, {`[😀]`, "😀", "😀"}, {`[!-Z\\^-~]+`, "]ab\\", "ab\\"},
	{`[a-zA-Z0-9$.+!*'(){},~:;=@#%&_\-]+`, "/a-b", "a-b"}, {`[\x21-\x5a\x5c\x5e-\x7e]+`, "[sshd]", "sshd"}, {`[ \t]+`, "a \tb", " \t"},
	// bytes that are no UTF-8
	{`a(.)b`, "a\xffb", "a\xffb|\xff"}, {`(\xff)`, "ÿ", "ÿ|ÿ"}, {`(.+)`, "é\xff€", "é\xff€|é\xff€"}, {`x(.*)y`, "é€x😀y", "x😀y|😀"},
}

func TestCorpus(t *testing.T) {
	for _, c := range corpus {
		engines := []string{"regexp2"}
		if r, err := Compile(c.src); err != nil {
			t.Fatalf("%s: %v", c.src, err)
		} else if r.native != nil && len(r.native.toEnd) > 0 {
			engines = append(engines, "native")
		} else if r.native != nil {
			engines = append(engines, paths...)
			if _, ok := ForRegexp(c.src); ok {
				engines = append(engines, "regexp")
			}
		}
		for _, e := range engines {
			got, ok := match(t, c.src, e, c.text)
			if s := strings.Join(got, "|"); !ok && c.want != "!" || ok && s != c.want {
				t.Errorf("%s: %s on %q gives %q %v, want %q", e, c.src, c.text, s, ok, c.want)
			}
		}
	}
}

// Where Go takes an expression unchanged (with the dialect's options) the answer is Go's.
func TestAsGo(t *testing.T) {
	var texts []string
	for _, c := range corpus {
		texts = append(texts, c.text)
	}
	// What Ruby has another meaning for.
	ruby := regexp.MustCompile(`\{,|\(\?[a-z-]*m|\(\?'|\[\[|&&|\\[hHZRe]|\\u|\[:|\\N`)
	n := 0
	for _, c := range corpus {
		re, err := regexp.Compile("(?ms)" + c.src)
		if err != nil || ruby.MatchString(c.src) || strings.Contains(c.src, "[a[") {
			continue
		}
		n++
		r, err := Compile(c.src)
		if err != nil {
			t.Fatalf("%s: %v", c.src, err)
		}
		m := r.Matcher()
		for _, text := range texts {
			want := re.FindStringSubmatchIndex(text)
			caps := make([]int, 2*(r.Groups+1))
			if ok, _ := m.Match([]byte(text), caps); ok != (want != nil) || ok && !reflect.DeepEqual(caps, want) {
				t.Errorf("%s on %q: %v, Go %v", c.src, text, caps, want)
			}
		}
	}
	if n < 80 {
		t.Errorf("only %d expressions were compared", n)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		src, want string
		off       int
	}{
		{`a)`, `this ) closes nothing`, 1}, {`(a`, `the group's ) is missing`, 0}, {`(a(b)`, `the group's ) is missing`, 0}, {`[a`, `the class's ] is missing`, 0}, {`x[^]`, `the class's ] is missing`, 1}, {`[[:alpha:]`, `the class's ] is missing`, 0}, {`[a[b]`, `the class's ] is missing`, 0},
		{`*a`, `* repeats nothing`, 0}, {`a|+`, `+ repeats nothing`, 2}, {`(?:?a)`, `? repeats nothing`, 3}, {`{2}`, `{2} repeats nothing`, 0}, {`a{3,2}`, `the interval {3,2} is empty`, 1}, {`a{200000}`, `repeated more than`, 1},
		{`a\`, `ends with a backslash`, 1}, {`[a\`, `ends with a backslash`, 2}, {`(?<`, `name has no end`, 0}, {`(?'`, `name has no end`, 0}, {`(?P<`, `name has no end`, 0}, {`(?<>a)`, `name is empty`, 0}, {`(?<a`, `name has no end`, 0}, {`(?`, `) is missing`, 0}, {`(?i`, `) is missing`, 0}, {`(?q)`, `unknown group (?q`, 0}, {`(?#a`, `comment's ) is missing`, 0},
		{`(a)\1`, `name the group`, 3}, {`\k<a>`, `no group before`, 0}, {`(?<a>x)(?<a>y)\k<a>`, `two groups have this name`, 14}, {`\kx`, `\k is followed by a name`, 0}, {`\G`, `\G is not supported`, 0}, {`\K`, `\K is not supported`, 0},
		{`[z-a]`, `the range z-a is empty`, 2}, {`\x{110000}`, `hex digits`, 0}, {`\xg`, `hex digits`, 0}, {`\u12`, `hex digits`, 0}, {`\p{Nope}`, `no property "Nope"`, 0}, {`\p`, `followed by a property`, 0}, {`\p{L`, `} is missing`, 0}, {`[\p{Nope}]`, `no property "Nope"`, 1},
		{strings.Repeat("(", 1000), `nested too deeply`, maxGroups}, {strings.Repeat("[", 1000), `nested too deeply`, 51}, {strings.Repeat("a", maxRegex+1), `more than`, -1}, {"\xff", "no UTF-8", -1},
	} {
		_, err := Compile(c.src)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, c.want) || e.Off != c.off {
			t.Errorf("%.40s: %#v, want %q at %d", c.src, err, c.want, c.off)
		}
	}
}

func TestEngineAndWhy(t *testing.T) {
	for _, c := range []struct{ src, engine, why string }{
		{`a+`, "native", "nothing that only backtracking gives"}, {`(?=a)`, "native", ""}, {`(?<!a)`, "native", ""}, {`(?<![0-9.+-])(?>[+-]?[0-9]+)(?![0-9])`, "native", ""}, {`(?=\s|$)`, "native", ""}, {`(?i)(?<!a)`, "native", ""}, {`(?!\S)`, "native", ""},
		{`(?>a+)b`, "native", ""}, {`a*+b`, "native", ""}, {`(?>a)`, "native", ""}, {`(?>a+)`, "native", ""}, {`(?>[0-9]+\.?)x`, "native", ""}, {`((?>[0-9]+):?)*`, "native", ""},
		{`(?=ab)`, "regexp2", "a look-ahead (?=...)"}, {`(?<!ab)`, "regexp2", "a look-behind (?<!...)"}, {`(?!é)`, "regexp2", "a look-ahead (?!...)"}, {`(?>a|ab)c`, "regexp2", "an atomic group (?>...) on which the match may depend"}, {`a*+a`, "regexp2", "a possessive quantifier (*+)"},
		{`(?>a*)[ab]`, "regexp2", "an atomic group"}, {`(?>a+?)b`, "regexp2", "an atomic group"}, {`(?>a+)$a*`, "native", ""},
		{`(?<a>x)\k<a>`, "regexp2", `a back-reference \k<a>`}, {`a{1001}`, "native", ""}, {`(?:a{100}){400}`, "native", ""}, {`(?:a{1000}){1000}`, "regexp2", "too big"}, {`[a-z]{1,64}(?:\.[a-z]{1,62}){0,63}@`, "native", ""}, {`(a\Z)`, "regexp2", `\Z within a group`},
		{quoted, "native", ""}, {`(?=(?<m>.*))b`, "native", ""}, {`(?!<[0-9])[0-9]`, "native", ""}, {`(?!<[0-9])[0-9<]`, "regexp2", "a look-ahead (?!...)"}, {`(?!ab)x?`, "regexp2", "a look-ahead (?!...)"},
	} {
		r, err := Compile(c.src)
		if err != nil || r.Engine != c.engine || !strings.Contains(r.Why, c.why) {
			t.Errorf("%s: %+v %v", c.src, r, err)
		}
	}
}

// Expressions that take other engines for minutes: an answer, or a time-out, soon.
func TestAdversarial(t *testing.T) {
	long := strings.Repeat("a", 50_000)
	for _, c := range []struct{ src, text string }{
		{`(a*)*b`, long}, {`(a|a)*b`, long}, {`(a|aa)+$b`, long}, {`(.*)(.*)(.*)(.*)(.*)x`, long[:5000]}, {`(?:a?){30}a{30}`, long[:29]}, {`(x+x+)+y`, strings.Repeat("x", 50_000)}, {`(.*) - (.*) - (.*) - (.*)`, strings.Repeat("word ", 5000)},
	} {
		for _, prefix := range []string{"", "(?=aa|xx|wo)"} {
			r, err := Compile(prefix + c.src)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			ok, err := r.Matcher().Match([]byte(c.text), make([]int, 2*(r.Groups+1)))
			took := time.Since(start)
			if limit := 20 * Timeout; took > limit {
				t.Errorf("%s on %s: %s", r.Engine, c.src, took)
			}
			if ok || r.Linear() && err != nil || err != nil && !errors.Is(err, ErrTimeout) {
				t.Errorf("%s on %s: %v %v", r.Engine, c.src, ok, err)
			}
		}
	}
	// A text and an expression that are both huge: an answer, or an error, after as many steps as are allowed.
	huge, err := Compile(`(?:[a-z]{1,60} ){600}[xy]|[0-9]`)
	if err != nil || huge.Engine != "native" {
		t.Fatal(huge, err)
	}
	defer func(old int) { maxWork = old }(maxWork)
	maxWork = 1_000_000
	if ok, err := huge.Matcher().Match([]byte(strings.Repeat("word ", 40_000)), nil); ok || !errors.Is(err, ErrWork) {
		t.Errorf("want ErrWork, got %v %v", ok, err)
	}
	r, _ := Compile(`(?=aa)(a+)+$`)
	_, err = r.Matcher().Match([]byte(strings.Repeat("a", 40)+"!"), make([]int, 2*(r.Groups+1)))
	if !errors.Is(err, ErrTimeout) || !strings.HasPrefix(err.Error(), "timeout") {
		t.Errorf("want a time-out, got %v", err)
	}
	if _, err := r.Matcher().Match(bytes.Repeat([]byte("a"), maxBacktrack+1), make([]int, 4)); !errors.Is(err, ErrTooLong) {
		t.Errorf("want ErrTooLong, got %v", err)
	}
}

// \Z is before the newline that ends the text, on both engines.
func TestEndOfText(t *testing.T) {
	for _, e := range []string{"regexp", "regexp2"} {
		for text, want := range map[string]bool{"b": true, "b\n": true, "b\n\n": false, "b\nx": false, "bx": false} {
			if got, ok := match(t, `(?<x>b)\Z`, e, text); ok != want || ok && got[1] != "b" {
				t.Errorf("%s on %q: %v %v", e, text, got, ok)
			}
		}
	}
}

// A matcher that has timed out, or not matched, works on.
func TestMatcherAgain(t *testing.T) {
	r, err := Compile(`(?=xx|aa)(a+)+$`)
	if err != nil {
		t.Fatal(err)
	}
	m := r.Matcher()
	caps := make([]int, 4)
	for i := range 3 {
		if ok, err := m.Match([]byte(strings.Repeat("a", 60)+"!"), caps); ok || err == nil {
			t.Fatal(i, ok, err)
		}
		if ok, err := m.Match([]byte("é!\naa"), caps); !ok || err != nil || fmt.Sprint(caps) != "[4 6 4 6]" {
			t.Fatal(i, ok, err, caps)
		}
		if ok, err := m.Match([]byte(strings.Repeat("é", 2*keepRunes)), caps); ok || err != nil {
			t.Fatal(i, ok, err)
		}
		if ok, err := m.Match([]byte("aa"), nil); !ok || err != nil {
			t.Fatal(i, ok, err)
		}
	}
}

func FuzzTranslate(f *testing.F) {
	for _, c := range corpus {
		f.Add(c.src, c.text)
	}
	for _, s := range []string{`(?`, `(?<`, `[[:`, `[a-\d]`, `\x{`, `\p`, `(?i-`, `[^`, `[[:]`, `(?<n>a)\<n>1`, `a{,`, `(?x)#`} {
		f.Add(s, "a")
	}
	f.Fuzz(func(t *testing.T, src, text string) {
		if len(src) > 200 || len(text) > 200 {
			return
		}
		a, err := translate(src, false)
		b, err2 := translate(src, true)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%q: %v, %v", src, err, err2)
		}
		if err != nil || a.groups != b.groups || !a.plain() {
			return
		}
		r := &Regex{Groups: a.groups}
		if a.backtrack != "" || r.useRegexp(a.text) != nil {
			return
		}
		caps := make([]int, 2*(a.groups+1))
		ok, _ := r.Matcher().Match([]byte(text), caps)
		back := &Regex{Groups: a.groups}
		if err := back.useRegexp2(b.text, ""); err != nil {
			t.Fatalf("%q: only regexp takes it: %s: %v", src, b.text, err)
		}
		ok2, err := back.Matcher().Match([]byte(text), make([]int, 2*(a.groups+1)))
		// Folding of letters like the Kelvin sign, and loops around what is empty, differ between the engines.
		if err == nil && ok != ok2 && !strings.Contains(src, "i") {
			t.Fatalf("%q on %q: regexp %v, regexp2 %v (%s)", src, text, ok, ok2, b.text)
		}
	})
}
