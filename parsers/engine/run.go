package engine

import "golang.org/x/sys/cpu"

// hasRun: bytes are looked at 32 at a time.
var hasRun = cpu.X86.HasAVX2

// nibbles is a set of ASCII bytes: bit h of element l stands for byte 16*h + l.
type nibbles [16]byte

func (n *nibbles) add(c int) { n[c&15] |= 1 << (c >> 4) }

// minSkip is after how many bytes of a run the rest is skipped at once.
const minSkip = 8

// run skips what leads from s back to it by t. It gives the place of the first byte that doesn't.
func (d *dfa) run(text []byte, from int, s, t uint32) int {
	table := d.table[s : s+d.classes]
	class := &d.p.class
	stop := min(len(text), from+minSkip)
	i := from
	for ; i < stop; i++ {
		if table[class[text[i]]] != t {
			return i
		}
	}
	return d.skip(text, i, s, t)
}

// skip is run for what is likely to be long.
func (d *dfa) skip(text []byte, i int, s, t uint32) int {
	table := d.table[s : s+d.classes]
	class := &d.p.class
	k := &d.skips[s/d.classes]
	if hasRun && len(text) >= 32 {
		if k.t != t {
			*k = skip{t: t}
		}
		if k.on {
			i = runOf(text, i, &k.set)
			if i == len(text) || table[class[text[i]]] != t {
				return i
			}
			// A byte beyond ASCII, or one that the set doesn't know yet.
		}
		if k.seen++; k.seen >= 4 && k.seen&(k.seen-1) == 0 || d.eager {
			d.learn(k, table, t)
		}
	}
	for ; i < len(text); i++ {
		if table[class[text[i]]] != t {
			break
		}
	}
	return i
}

// learn notes the bytes that a skip may pass over: those known to lead back.
func (d *dfa) learn(k *skip, table []uint32, t uint32) {
	k.on = true
	for c := range 0x80 {
		if table[d.p.class[c]] == t {
			k.set.add(c)
		}
	}
}
