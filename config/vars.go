package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// variable is `${NAME}`, `${NAME:default}` or `${file:PATH}`; `$${` stands for a literal `${`.
var variable = regexp.MustCompile(`\$?\$\{([^{}]*)\}`)

// secretName are the variables whose values are taken for secrets, as every ${file:PATH} is.
var secretName = regexp.MustCompile(`(?i)pass|secret|token|key|dsn|cred|auth|pwd`)

var varName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secretLimit bounds what `${file:PATH}` reads.
const secretLimit = 64 << 10

// expand replaces the variables in a value. missing lists those that can't be resolved.
// Values that are secrets are told to hide.
func expand(s string, lookup func(string) (string, bool), hide func(string)) (out string, missing []string) {
	if !strings.Contains(s, "${") {
		return s, nil
	}
	out = variable.ReplaceAllStringFunc(s, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m[1:]
		}
		v, err := resolve(m[2:len(m)-1], lookup)
		if err != nil {
			missing = append(missing, err.Error())
			return "unresolved"
		}
		if ref := m[2 : len(m)-1]; strings.HasPrefix(ref, "file:") || secretName.MatchString(ref) {
			hide(v)
		}
		return v
	})
	return out, missing
}

func resolve(ref string, lookup func(string) (string, bool)) (string, error) {
	if path, ok := strings.CutPrefix(ref, "file:"); ok {
		// Before it is opened: opening a named pipe waits.
		if st, err := os.Stat(path); err == nil && st.Mode()&os.ModeNamedPipe != 0 {
			return "", fmt.Errorf("${file:%s}: a named pipe; a secret is read from a file", path)
		}
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("${file:%s}: %w", path, err)
		}
		defer f.Close()
		b := make([]byte, secretLimit+1)
		n := 0
		for n < len(b) {
			k, err := f.Read(b[n:])
			n += k
			if err != nil {
				break
			}
		}
		if n > secretLimit {
			return "", fmt.Errorf("${file:%s}: larger than 64KiB", path)
		}
		return strings.TrimRight(string(b[:n]), "\r\n"), nil
	}
	name, def, hasDef := strings.Cut(ref, ":")
	if !varName.MatchString(name) {
		return "", fmt.Errorf("${%s}: not a variable's name; write ${NAME}, ${NAME:default} or ${file:PATH}, and $${ for a literal ${", ref)
	}
	if v, ok := lookup(name); ok {
		return v, nil
	}
	if hasDef {
		return def, nil
	}
	return "", fmt.Errorf("${%s}: the environment has no variable %s; set it or write ${%s:default}", ref, name, name)
}
