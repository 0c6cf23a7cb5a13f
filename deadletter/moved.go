package deadletter

import "encoding/json"

// Moved is the committed mark of a file that was given another name: the letters behind it are known there too. A
// mark of another file stays as it is.
func Moved(committed Mark, from, to string) Mark {
	var m mark
	if json.Unmarshal(committed, &m) != nil || m.Path != from {
		return committed
	}
	m.Path = to
	out, err := json.Marshal(m)
	if err != nil {
		return committed
	}
	return out
}
