package expr

// Finding one place in a JSON text without building its tree.

// skim reads the value at j.i and gives where the value that steps name begins,
// -1 where there is none. ok is false where the text is no JSON. Of a repeated
// key the last counts.
func (j *jparser) skim(steps []jsonStep, depth int) (at int, ok bool) {
	j.space()
	if j.i >= len(j.p) || depth > maxJSONDepth {
		return -1, false
	}
	at = -1
	if len(steps) == 0 {
		at = j.i
	}
	switch c := j.p[j.i]; c {
	case '{', '[':
		end := byte('}')
		if c == '[' {
			end = ']'
		}
		j.i++
		j.space()
		if j.i < len(j.p) && j.p[j.i] == end {
			j.i++
			return at, true
		}
		for n := 0; ; n++ {
			hit := false
			if c == '{' {
				j.space()
				key, ok := j.str()
				if !ok {
					return -1, false
				}
				j.space()
				if j.i >= len(j.p) || j.p[j.i] != ':' {
					return -1, false
				}
				j.i++
				hit = len(steps) > 0 && steps[0].op == '.' && string(key) == steps[0].names[0]
			} else {
				hit = len(steps) > 0 && steps[0].op == '[' && steps[0].idx[0] == n
			}
			if hit {
				if at, ok = j.skim(steps[1:], depth+1); !ok {
					return -1, false
				}
			} else if _, ok := j.skim(nowhere, depth+1); !ok {
				return -1, false
			}
			j.space()
			if j.i >= len(j.p) {
				return -1, false
			}
			if j.p[j.i] == ',' {
				j.i++
				continue
			}
			if j.p[j.i] != end {
				return -1, false
			}
			j.i++
			return at, true
		}
	case '"':
		_, ok := j.str()
		return at, ok
	}
	var n jnode
	return at, j.scalar(&n)
}

// nowhere is a step that nothing takes.
var nowhere = []jsonStep{{op: 'x'}}

// simple tells that a path is names and indexes from the start only.
func (p *jsonPath) simple() bool {
	for _, s := range p.steps {
		if !(s.op == '.' && len(s.names) == 1 || s.op == '[' && len(s.idx) == 1 && s.idx[0] >= 0) {
			return false
		}
	}
	return true
}

// lookup finds the path's value in a text: root tells whether the text is JSON
// (0: no, 'n': null). Scalars come in env's own node, valid until the next call.
func (p *jsonPath) lookup(env *Env, text []byte) (n *jnode, root byte) {
	if !p.quick {
		r := parseJSON(text)
		if r == nil {
			return nil, 0
		}
		return p.find(r), r.kind
	}
	j := jparser{p: text}
	at, ok := j.skim(p.steps, 0)
	if !ok {
		return nil, 0
	}
	k := jparser{p: text}
	k.space()
	root = text[k.i]
	if at < 0 {
		return nil, root
	}
	k.i = at
	switch text[at] {
	case '{', '[':
		return k.value(0), root
	case '"':
		env.node = jnode{kind: '"'}
		env.node.text, _ = k.str()
	default:
		env.node = jnode{}
		k.scalar(&env.node)
	}
	return &env.node, root
}
