package text

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"
)

// charset is what the cutter must know of a character set. nil is UTF-8, which is passed on as it is.
type charset struct {
	enc    encoding.Encoding
	unit   int    // bytes of a code unit; the newline is looked for at multiples of it
	nl, cr []byte // "\n" and "\r"
	ascii  bool   // bytes below 0x80 are ASCII wherever no byte of the line is above
	boms   []bom
}

// bom is a byte order mark and what is read after it.
type bom struct {
	mark []byte
	then *charset
}

var utf8BOM = []bom{{mark: []byte("\xEF\xBB\xBF")}}

func newCharset(e encoding.Encoding) (*charset, error) {
	c := &charset{enc: e}
	var err error
	if c.nl, err = e.NewEncoder().Bytes([]byte("\n")); err != nil || len(c.nl) == 0 {
		return nil, fmt.Errorf("it has no newline")
	}
	if c.cr, err = e.NewEncoder().Bytes([]byte("\r")); err != nil || len(c.cr) != len(c.nl) {
		return nil, fmt.Errorf("it has no carriage return")
	}
	c.unit = len(c.nl)
	if c.unit == 1 {
		c.ascii = true
		for i := byte(0); i < 0x80; i++ {
			if p, err := e.NewDecoder().Bytes([]byte{i}); err != nil || len(p) != 1 || p[0] != i {
				c.ascii = false
				break
			}
		}
	}
	return c, nil
}

func must(e encoding.Encoding) *charset {
	c, err := newCharset(e)
	if err != nil {
		panic("text: " + err.Error())
	}
	return c
}

// lookup finds a character set by its IANA name or one of the usual aliases; nil is UTF-8.
func lookup(name string) (*charset, error) {
	n := strings.ToLower(strings.TrimSpace(name))
	switch n {
	case "", "utf-8", "utf8":
		return nil, nil
	case "utf-8-escaped":
		return newCharset(escapedUTF8{})
	case "utf-16", "utf-16le", "utf-16be", "utf16", "utf16le", "utf16be":
		le := must(unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM))
		be := must(unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM))
		boms := []bom{{[]byte("\xFF\xFE"), le}, {[]byte("\xFE\xFF"), be}}
		return withBOM(le, be, strings.HasSuffix(n, "le"), boms), nil
	case "utf-32", "utf-32le", "utf-32be", "utf32", "utf32le", "utf32be":
		le := must(utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM))
		be := must(utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM))
		boms := []bom{{[]byte("\xFF\xFE\x00\x00"), le}, {[]byte("\x00\x00\xFE\xFF"), be}}
		return withBOM(le, be, strings.HasSuffix(n, "le"), boms), nil
	}
	e, err := ianaindex.IANA.Encoding(n)
	if err != nil || e == nil {
		if e, err = ianaindex.MIME.Encoding(n); err != nil || e == nil {
			e, err = htmlindex.Get(n)
		}
	}
	if err != nil || e == nil {
		return nil, fmt.Errorf("encoding %q is not known; use an IANA name such as utf-16le, iso-8859-1, windows-1252, gbk or shift_jis", name)
	}
	c, err := newCharset(e)
	if err != nil {
		return nil, fmt.Errorf("encoding %q cannot be cut into lines: %w", name, err)
	}
	return c, nil
}

// withBOM: a mark in the file overrides the byte order that was given; without either it is big
// endian (RFC 2781).
func withBOM(le, be *charset, little bool, boms []bom) *charset {
	c := *be
	if little {
		c = *le
	}
	c.boms = boms
	return &c
}

// find gives the index of the first newline in p[from:] that begins at a multiple of the unit, or
// -1. p begins at such a multiple, from is one.
func (c *charset) find(p []byte, from int) int {
	for from < len(p) {
		i := bytes.Index(p[from:], c.nl)
		if i < 0 {
			return -1
		}
		if i += from; i%c.unit == 0 {
			return i
		}
		from = i - i%c.unit + c.unit
	}
	return -1
}

// decode appends p as UTF-8. What is no text in the character set becomes U+FFFD.
func (c *charset) decode(d *encoding.Decoder, dst, p []byte) []byte {
	if c.ascii && isASCII(p) {
		return append(dst, p...)
	}
	start := len(dst)
	for room := 3*len(p) + 16; ; room *= 2 {
		for cap(dst)-len(dst) < room {
			dst = append(dst[:cap(dst)], 0)[:start]
		}
		d.Reset()
		n, _, err := d.Transform(dst[start:start+room], p, true)
		if err != transform.ErrShortDst {
			return dst[:start+n]
		}
	}
}

func isASCII(p []byte) bool {
	for len(p) >= 8 {
		if binary.LittleEndian.Uint64(p)&0x8080808080808080 != 0 {
			return false
		}
		p = p[8:]
	}
	for _, b := range p {
		if b >= 0x80 {
			return false
		}
	}
	return true
}
