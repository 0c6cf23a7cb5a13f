package engine

// runOf gives the index of the first byte of s, from `from` on, that is not in the set; len(s) where there is none. s has 32
// bytes or more.
//
//go:noescape
func runOf(s []byte, from int, set *nibbles) int

// high tells whether a byte of s is 0x80 or more. s has 32 bytes or more.
//
//go:noescape
func high(s []byte) bool
