package file

import (
	"fmt"
	"path/filepath"
	"strings"
)

// layout is what a path template's text says about the paths it makes.
type layout struct {
	root    string // the folder that all paths are in, "" for the working directory
	slashes int    // in the text itself and in date patterns, not in values
}

func newLayout(src string) layout {
	var l layout
	fixed := -1 // where the first placeholder begins
	for i := 0; i < len(src); i++ {
		switch {
		case src[i] == '/':
			l.slashes++
		case strings.HasPrefix(src[i:], "%%"):
			i++
		case strings.HasPrefix(src[i:], "%{"):
			if fixed < 0 {
				fixed = i
			}
			end := strings.IndexByte(src[i:], '}')
			if end < 0 {
				end = len(src) - i - 1
			}
			if strings.HasPrefix(src[i:], "%{+") {
				l.slashes += strings.Count(src[i:i+end], "/")
			}
			i += end
		}
	}
	if fixed < 0 {
		fixed = len(src)
	}
	if n := strings.LastIndexByte(src[:fixed], '/'); n >= 0 {
		l.root = strings.ReplaceAll(src[:n+1], "%%", "%")
	}
	return l
}

func (l layout) wrong() string {
	if c := filepath.Clean(l.root + "x"); l.root != "" && c != l.root+"x" {
		return fmt.Sprintf("write the folder %q without . and .. and double slashes: %q", l.root, strings.TrimSuffix(c, "x"))
	}
	return ""
}

// maxName is what file systems allow for one name, less what rotation adds.
const maxName = 255 - 24

// check tells why a path made by the template can't be used, "" where it can.
func (l layout) check(path string) string {
	rest, ok := strings.CutPrefix(path, l.root)
	switch {
	case !ok:
		return "the path leaves the folder " + l.root
	case strings.Count(path, "/") != l.slashes:
		return fmt.Sprintf("a value in the path %q has a slash in it", path)
	case strings.IndexByte(path, 0) >= 0:
		return fmt.Sprintf("a value in the path %q has a NUL byte in it", path)
	case len(path) > 4000:
		return fmt.Sprintf("the path is %d bytes long", len(path))
	}
	for _, name := range strings.Split(rest, "/") {
		switch {
		case name == "":
			return fmt.Sprintf("a name in the path %q is empty", path)
		case name == "." || name == "..":
			return fmt.Sprintf("the path %q leaves its folder", path)
		case len(name) > maxName:
			return fmt.Sprintf("a name in the path is %d bytes long, more than %d", len(name), maxName)
		}
	}
	return ""
}
