package text

import (
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"
)

// escapedUTF8 is UTF-8 in which a byte that is none becomes four characters, `\xC3`: nothing of the input is lost, and what
// comes out is a text. Texts without such bytes are what they were.
type escapedUTF8 struct{}

func (escapedUTF8) NewDecoder() *encoding.Decoder {
	return &encoding.Decoder{Transformer: escaper{}}
}
func (escapedUTF8) NewEncoder() *encoding.Encoder {
	return &encoding.Encoder{Transformer: encoding.Nop.NewEncoder().Transformer}
}

type escaper struct{ transform.NopResetter }

func (escaper) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	const hex = "0123456789ABCDEF"
	for nSrc < len(src) {
		if !atEOF && !utf8.FullRune(src[nSrc:]) {
			return nDst, nSrc, transform.ErrShortSrc
		}
		r, n := utf8.DecodeRune(src[nSrc:])
		if r == utf8.RuneError && n == 1 {
			if len(dst)-nDst < 4 {
				return nDst, nSrc, transform.ErrShortDst
			}
			c := src[nSrc]
			nDst += copy(dst[nDst:], []byte{'\\', 'x', hex[c>>4], hex[c&15]})
			nSrc++
			continue
		}
		if len(dst)-nDst < n {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += copy(dst[nDst:], src[nSrc:nSrc+n])
		nSrc += n
	}
	return nDst, nSrc, nil
}
