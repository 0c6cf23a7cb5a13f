package pipeline

import "sync"

// trouble is what the run retries at the moment, by the part that has it.
type trouble struct {
	mu sync.Mutex
	by map[string]string
}

// set notes an error and tells whether it is news, to be logged.
func (t *trouble) set(part string, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[string]string{}
	}
	news := t.by[part] != err.Error()
	t.by[part] = err.Error()
	return news
}

// clear tells whether there was an error before.
func (t *trouble) clear(part string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, had := t.by[part]
	delete(t.by, part)
	return had
}

func (t *trouble) all() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]string{}
	for k, v := range t.by {
		out[k] = v
	}
	return out
}
