//go:build !amd64

package engine

func runOf([]byte, int, *nibbles) int { panic("engine: no blocks here") }

func high([]byte) bool { panic("engine: no blocks here") }
