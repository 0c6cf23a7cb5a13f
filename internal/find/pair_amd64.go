package find

import "golang.org/x/sys/cpu"

var hasPair = cpu.X86.HasAVX2

// indexPair gives the first i with s[i] == a and s[i+gap] == b, -1 where there is none. s has at least gap+32 bytes.
//
//go:noescape
func indexPair(s []byte, a, b byte, gap int) int
