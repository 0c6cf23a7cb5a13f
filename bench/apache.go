package bench

import (
	"bytes"
	"io"
)

// scanApache finds the fields of a combined log line by hand: the offsets of address, ident, user, time, method, url,
// version, status, size, referrer and agent. It is as strict as a careful program is: every delimiter must be there, numbers
// are digits.
func scanApache(line []byte, at *[22]int) bool {
	i := 0
	word := func(k int) bool {
		from := i
		for i < len(line) && line[i] > ' ' && line[i] != '"' {
			i++
		}
		at[2*k], at[2*k+1] = from, i
		return i > from && i < len(line) && line[i] == ' '
	}
	number := func(k int) bool {
		from := i
		for i < len(line) && line[i]-'0' <= 9 {
			i++
		}
		if i == from && i < len(line) && line[i] == '-' {
			i++
		}
		at[2*k], at[2*k+1] = from, i
		return i > from && i < len(line) && line[i] == ' '
	}
	until := func(k int, c byte) bool {
		n := bytes.IndexByte(line[i:], c)
		if n < 0 {
			return false
		}
		at[2*k], at[2*k+1] = i, i+n
		i += n + 1
		return true
	}
	for k := range 3 {
		if !word(k) {
			return false
		}
		i++
	}
	if i >= len(line) || line[i] != '[' {
		return false
	}
	i++
	if !until(3, ']') || at[7]-at[6] != 26 || !bytes.HasPrefix(line[i:], []byte(` "`)) {
		return false
	}
	i += 2
	if !word(4) {
		return false
	}
	i++
	if !word(5) {
		return false
	}
	if i++; !bytes.HasPrefix(line[i:], []byte("HTTP/")) {
		return false
	}
	i += 5
	if !until(6, '"') || i >= len(line) || line[i] != ' ' {
		return false
	}
	i++
	if !number(7) {
		return false
	}
	i++
	if !number(8) {
		return false
	}
	i++
	if i >= len(line) || line[i] != '"' {
		return false
	}
	i++
	if !until(9, '"') || !bytes.HasPrefix(line[i:], []byte(` "`)) {
		return false
	}
	i += 2
	return until(10, '"') && i == len(line)
}

// LoopApache takes a combined log apart by hand and writes all fields as JSON, as rsetl's grok step names them.
func LoopApache(path, out string) (lines int64, err error) { return loopApache(path, out, 0) }

// LoopApache5xx is LoopApache for answers of at least 500.
func LoopApache5xx(path, out string) (lines int64, err error) { return loopApache(path, out, '5') }

func loopApache(path, out string, least byte) (lines int64, err error) {
	err = writing(out, func(w io.Writer) error {
		var dst []byte
		var at [22]int
		return blocks(path, func(p []byte) error {
			dst = dst[:0]
			for len(p) > 0 {
				end := bytes.IndexByte(p, '\n')
				line := p[:end]
				p = p[end+1:]
				if scanApache(line, &at) && line[at[14]] >= least {
					dst = appendApache(dst, line, &at)
					lines++
				}
			}
			_, err := w.Write(dst)
			return err
		})
	})
	return lines, err
}

func appendApache(dst, line []byte, at *[22]int) []byte {
	field := func(k int) []byte { return line[at[2*k]:at[2*k+1]] }
	has := func(k int) bool { f := field(k); return len(f) > 0 && (len(f) != 1 || f[0] != '-') }
	dst = append(dst, `{"source":{"address":`...)
	dst = append(appendString(dst, field(0)), '}')
	if has(1) {
		dst = append(dst, `,"apache":{"access":{"user":{"identity":`...)
		dst = append(appendString(dst, field(1)), "}}}"...)
	}
	if has(2) {
		dst = append(dst, `,"user":{"name":`...)
		dst = append(appendString(dst, field(2)), '}')
	}
	dst = append(dst, `,"timestamp":`...)
	dst = appendString(dst, field(3))
	dst = append(dst, `,"http":{"request":{"method":`...)
	dst = appendString(dst, field(4))
	if has(9) {
		dst = append(dst, `,"referrer":`...)
		dst = appendString(dst, field(9))
	}
	dst = append(dst, `},"version":`...)
	dst = appendString(dst, field(6))
	if has(7) {
		dst = append(dst, `,"response":{"status_code":`...)
		dst = append(dst, field(7)...)
		if has(8) {
			dst = append(dst, `,"body":{"bytes":`...)
			dst = append(append(dst, field(8)...), '}')
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `},"url":{"original":`...)
	dst = append(appendString(dst, field(5)), '}')
	if has(10) {
		dst = append(dst, `,"user_agent":{"original":`...)
		dst = append(appendString(dst, field(10)), '}')
	}
	return append(dst, "}\n"...)
}
