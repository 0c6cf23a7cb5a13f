// Package twogen is a cache of bounded size for one goroutine.
package twogen

// Cache keeps what was asked for last, in two generations: when the young one is full it becomes the old one, and the old one
// is forgotten. What is found in the old one moves to the young one. A look-up allocates nothing.
type Cache[V any] struct {
	young, old map[string]*V
	max        int
}

// New makes a cache of at most max entries, at least two.
func New[V any](max int) *Cache[V] {
	if max < 2 {
		max = 2
	}
	return &Cache[V]{young: map[string]*V{}, max: max / 2}
}

// Get finds an entry, nil where there is none. It stays valid.
func (c *Cache[V]) Get(key []byte) *V {
	if v := c.young[string(key)]; v != nil {
		return v
	}
	v := c.old[string(key)]
	if v != nil {
		c.put(string(key), v)
	}
	return v
}

// Put adds an entry and gives the place where it is kept.
func (c *Cache[V]) Put(key []byte, v V) *V {
	p := &v
	c.put(string(key), p)
	return p
}

// Clear forgets everything.
func (c *Cache[V]) Clear() { c.young, c.old = map[string]*V{}, nil }

// Len is the number of entries, those that are in both generations twice.
func (c *Cache[V]) Len() int { return len(c.young) + len(c.old) }

func (c *Cache[V]) put(key string, v *V) {
	if len(c.young) >= c.max {
		c.young, c.old = make(map[string]*V, c.max), c.young
	}
	c.young[key] = v
}
