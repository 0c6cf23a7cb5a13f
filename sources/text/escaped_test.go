package text

import "testing"

func TestEscapedUTF8(t *testing.T) {
	cs, err := lookup("UTF-8-escaped")
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{"plain": "plain", "é😀": "é😀", "a\xffb": `a\xFFb`, "\xed\xb9\x81\xc3": `\xED\xB9\x81\xC3`, "é\xc3": `é\xC3`, "": ""} {
		if got := string(cs.decode(cs.enc.NewDecoder(), nil, []byte(in))); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
