package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"unicode/utf8"
)

// The hand-written loops: each does one job and nothing else, as a programmer would write it who
// knows the data. One block size for all, that of rsetl's file source.

// LoopBlock is the size of the blocks that the loops read.
const LoopBlock = 128 << 10

// blocks reads a file by blocks and calls f with each block's complete lines, each with its newline.
func blocks(path string, f func(block []byte) error) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	buf := make([]byte, LoopBlock)
	have := 0
	for {
		if have == len(buf) { // a line longer than the block
			buf = append(buf, make([]byte, len(buf))...)
		}
		n, err := in.Read(buf[have:])
		have += n
		if end := bytes.LastIndexByte(buf[:have], '\n') + 1; end > 0 {
			if err := f(buf[:end]); err != nil {
				return err
			}
			have = copy(buf, buf[end:have])
		}
		if err == io.EOF {
			if have > 0 {
				buf[have] = '\n'
				return f(buf[:have+1])
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// LoopLines finds the line ends of a file and gives the number of lines.
func LoopLines(path string) (lines int64, err error) {
	err = blocks(path, func(p []byte) error {
		for len(p) > 0 {
			p = p[bytes.IndexByte(p, '\n')+1:]
			lines++
		}
		return nil
	})
	return lines, err
}

// LoopGrep is LoopLines that also looks into each line for a text, and gives the number of those that have it.
func LoopGrep(path, text string) (hits int64, err error) {
	want := []byte(text)
	err = blocks(path, func(p []byte) error {
		for len(p) > 0 {
			n := bytes.IndexByte(p, '\n')
			if bytes.Contains(p[:n], want) {
				hits++
			}
			p = p[n+1:]
		}
		return nil
	})
	return hits, err
}

// LoopToJSON writes {"message": line} for every line.
func LoopToJSON(path, out string) (lines int64, err error) { return loopToJSON(path, out, nil) }

// loopToJSON takes only the lines that have a text, where one is given.
func loopToJSON(path, out string, has []byte) (lines int64, err error) {
	err = writing(out, func(w io.Writer) error {
		var dst []byte
		return blocks(path, func(p []byte) error {
			dst = dst[:0]
			for len(p) > 0 {
				n := bytes.IndexByte(p, '\n')
				if has != nil && !bytes.Contains(p[:n], has) {
					p = p[n+1:]
					continue
				}
				dst = append(dst, `{"message":`...)
				dst = appendString(dst, p[:n])
				dst = append(dst, '}', '\n')
				lines++
				p = p[n+1:]
			}
			_, err := w.Write(dst)
			return err
		})
	})
	return lines, err
}

// LoopJSON copies the objects that have "level":"warn" or "error", found without parsing the rest.
func LoopJSON(path, out string) (lines int64, err error) {
	err = writing(out, func(w io.Writer) error {
		var dst []byte
		key := []byte(`"level":"`)
		return blocks(path, func(p []byte) error {
			dst = dst[:0]
			for len(p) > 0 {
				n := bytes.IndexByte(p, '\n')
				line := p[:n]
				if i := bytes.Index(line, key); i >= 0 {
					if v := line[i+len(key):]; bytes.HasPrefix(v, []byte(`warn"`)) || bytes.HasPrefix(v, []byte(`error"`)) {
						dst = append(dst, p[:n+1]...)
						lines++
					}
				}
				p = p[n+1:]
			}
			_, err := w.Write(dst)
			return err
		})
	})
	return lines, err
}

// LoopStdJSON is LoopJSON with encoding/json into a struct of the one field.
func LoopStdJSON(path, out string) (lines int64, err error) {
	err = writing(out, func(w io.Writer) error {
		var dst []byte
		return blocks(path, func(p []byte) error {
			dst = dst[:0]
			for len(p) > 0 {
				n := bytes.IndexByte(p, '\n')
				var v struct {
					Level string `json:"level"`
				}
				if err := json.Unmarshal(p[:n], &v); err != nil {
					return err
				}
				if v.Level == "warn" || v.Level == "error" {
					dst = append(dst, p[:n+1]...)
					lines++
				}
				p = p[n+1:]
			}
			_, err := w.Write(dst)
			return err
		})
	})
	return lines, err
}

// writing makes the file; as in rsetl it is synced before it counts as written.
func writing(path string, f func(w io.Writer) error) error {
	o, err := os.Create(path)
	if err != nil {
		return err
	}
	err = f(o)
	if e := o.Sync(); err == nil {
		err = e
	}
	if e := o.Close(); err == nil {
		err = e
	}
	return err
}

// appendString appends s as a JSON string: a byte at a time by a table, invalid UTF-8 replaced.
func appendString(dst, s []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

var plain = func() (t [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return
}()

// RunLoop runs a loop by its name: what cmd/loop's command line says.
func RunLoop(args []string) (int64, error) {
	loops := map[string]func(in, out string) (int64, error){
		"lines":    func(in, _ string) (int64, error) { return LoopLines(in) },
		"grep":     func(in, _ string) (int64, error) { return LoopGrep(in, FilterText) },
		"grepjson": func(in, out string) (int64, error) { return loopToJSON(in, out, []byte(FilterText)) },
		"tojson":   LoopToJSON, "json": LoopJSON, "stdjson": LoopStdJSON,
		"apache": LoopApache, "apache5xx": LoopApache5xx,
	}
	if len(args) != 3 || loops[args[0]] == nil {
		return 0, fmt.Errorf("give one of lines, grep, tojson, json, stdjson, apache, apache5xx, then input and output; have %s", strconv.Quote(fmt.Sprint(args)))
	}
	return loops[args[0]](args[1], args[2])
}
