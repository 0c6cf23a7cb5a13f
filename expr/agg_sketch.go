package expr

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/rsetl/rsetl/record"
)

// quantiles is PERCENTILE's state: the values themselves up to exactValues of them, then DDSketch (Masson, Rim, Lee, VLDB
// 2019): buckets that grow by the factor gamma, so that what is estimated is off by at most sketchError of the value.
type quantiles struct {
	exact    []float64
	pos, neg map[int32]uint64 // by the logarithm of the value's size
	zero     uint64
	n        uint64
	shares   []float64
	array    bool
}

const (
	exactValues = 256
	sketchError = 0.01
	// maxBuckets covers values that differ by a factor of 10^35; beyond, those nearest to zero fall together.
	maxBuckets = 4096
	tiny       = 1e-300
)

var logGamma = math.Log((1 + sketchError) / (1 - sketchError))

var _ Accumulator = (*quantiles)(nil)

func newQuantiles(c *Call) (func() Accumulator, error) {
	ps, array, err := shares(c)
	if err != nil {
		return nil, err
	}
	return func() Accumulator { return &quantiles{shares: ps, array: array} }, nil
}

func (q *quantiles) Add(env *Env, args []record.Value) {
	if x := env.float(args[0]); !math.IsNaN(x) {
		q.add(x, 1)
	}
}

func (q *quantiles) add(x float64, n uint64) {
	q.n += n
	if q.pos == nil && n == 1 && len(q.exact) < exactValues {
		q.exact = append(q.exact, x)
		return
	}
	q.sketch()
	q.count(x, n)
}

// sketch turns the values into buckets.
func (q *quantiles) sketch() {
	if q.pos != nil {
		return
	}
	q.pos, q.neg = map[int32]uint64{}, map[int32]uint64{}
	for _, x := range q.exact {
		q.count(x, 1)
	}
	q.exact = nil
}

func (q *quantiles) count(x float64, n uint64) {
	switch {
	case x > tiny:
		q.pos[bucketOf(x)] += n
		collapse(q.pos)
	case x < -tiny:
		q.neg[bucketOf(-x)] += n
		collapse(q.neg)
	default:
		q.zero += n
	}
}

func bucketOf(x float64) int32 {
	if math.IsInf(x, 1) {
		x = math.MaxFloat64
	}
	return int32(math.Ceil(math.Log(x) / logGamma))
}

func bucketValue(i int32) float64 {
	x := 2 * math.Exp(float64(i)*logGamma) / (math.Exp(logGamma) + 1)
	if math.IsInf(x, 1) {
		return math.MaxFloat64
	}
	return x
}

func collapse(m map[int32]uint64) {
	if len(m) <= maxBuckets {
		return
	}
	keys := sortedKeys(m)
	m[keys[1]] += m[keys[0]]
	delete(m, keys[0])
}

func sortedKeys(m map[int32]uint64) []int32 {
	keys := make([]int32, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (q *quantiles) Merge(_ *Env, other Accumulator) {
	o := other.(*quantiles)
	if o.pos == nil {
		for _, x := range o.exact {
			q.add(x, 1)
		}
		return
	}
	q.sketch()
	q.n += o.n
	q.zero += o.zero
	for k, n := range o.pos {
		q.pos[k] += n
		collapse(q.pos)
	}
	for k, n := range o.neg {
		q.neg[k] += n
		collapse(q.neg)
	}
}

func (q *quantiles) Result(env *Env) record.Value {
	if q.n == 0 {
		return null
	}
	vs := make([]record.Value, 0, len(q.shares))
	slices.Sort(q.exact)
	for _, p := range q.shares {
		vs = append(vs, record.MakeFloat(q.at(p*float64(q.n-1))))
	}
	if !q.array {
		return vs[0]
	}
	return env.B.PutItems(record.Array, vs)
}

// at is the value at a rank from 0 to n-1.
func (q *quantiles) at(rank float64) float64 {
	if q.pos == nil {
		i := int(rank)
		if i+1 >= len(q.exact) {
			return q.exact[len(q.exact)-1]
		}
		f := rank - float64(i)
		return q.exact[i] + (q.exact[i+1]-q.exact[i])*f
	}
	left := uint64(rank)
	keys := sortedKeys(q.neg)
	for i := len(keys) - 1; i >= 0; i-- {
		if n := q.neg[keys[i]]; left < n {
			return -bucketValue(keys[i])
		} else {
			left -= n
		}
	}
	if left < q.zero {
		return 0
	}
	left -= q.zero
	keys = sortedKeys(q.pos)
	for _, k := range keys {
		if n := q.pos[k]; left < n {
			return bucketValue(k)
		} else {
			left -= n
		}
	}
	return bucketValue(keys[len(keys)-1])
}

func (q *quantiles) AppendBinary(dst []byte) []byte {
	if q.pos == nil {
		dst = append(dst, 1)
		for _, x := range q.exact {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
		}
		return dst
	}
	dst = append(dst, 2)
	dst = appendWords(dst, []uint64{q.zero, uint64(len(q.neg)), uint64(len(q.pos))})
	for _, m := range []map[int32]uint64{q.neg, q.pos} {
		for _, k := range sortedKeys(m) {
			dst = binary.AppendVarint(dst, int64(k))
			dst = binary.AppendUvarint(dst, m[k])
		}
	}
	return dst
}

func (q *quantiles) Restore(p []byte) error {
	switch {
	case len(p) > 0 && p[0] == 1 && len(p)%8 == 1 && len(p) <= 1+8*exactValues:
		for p = p[1:]; len(p) > 0; p = p[8:] {
			q.exact = append(q.exact, math.Float64frombits(binary.LittleEndian.Uint64(p)))
		}
		q.n = uint64(len(q.exact))
		return nil
	case len(p) > 0 && p[0] == 2:
		var head [3]uint64
		p, ok := readWords(head[:], p[1:])
		if !ok || head[1]+head[2] > uint64(len(p)) {
			return errState
		}
		q.pos, q.neg, q.zero, q.n = map[int32]uint64{}, map[int32]uint64{}, head[0], head[0]
		for i := range head[1] + head[2] {
			k, n := binary.Varint(p)
			if n <= 0 {
				return errState
			}
			c, rest, ok := readWord(p[n:])
			if !ok {
				return errState
			}
			p = rest
			q.n += c
			if i < head[1] {
				q.neg[int32(k)] += c
			} else {
				q.pos[int32(k)] += c
			}
		}
		if len(p) == 0 {
			return nil
		}
	}
	return errState
}

func (q *quantiles) Size() int { return 120 + 8*cap(q.exact) + 24*(len(q.pos)+len(q.neg)) }

// distinctCount is APPROX_COUNT_DISTINCT's state: hashes up to exactHashes of them, then HyperLogLog (Flajolet et al.,
// 2007) with 4,096 registers, whose standard error is 1.04/64 = 1.6 %.
type distinctCount struct {
	hashes []uint64 // sorted
	regs   []byte
}

const (
	hllBits     = 12
	exactHashes = 256
)

var _ Accumulator = (*distinctCount)(nil)

func newDistinctCount(*Call) (func() Accumulator, error) {
	return func() Accumulator { return &distinctCount{} }, nil
}

// stableHash never changes: states hold what it gave. FNV-1a, mixed as in MurmurHash3.
func stableHash(p []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range p {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

func (d *distinctCount) Add(env *Env, args []record.Value) {
	env.tmp = env.B.AppendValue(env.tmp[:0], args[0])
	d.add(stableHash(env.tmp))
}

func (d *distinctCount) add(h uint64) {
	if d.regs == nil {
		i, found := slices.BinarySearch(d.hashes, h)
		if found {
			return
		}
		if len(d.hashes) < exactHashes {
			d.hashes = slices.Insert(d.hashes, i, h)
			return
		}
		d.dense()
	}
	i := h >> (64 - hllBits)
	if r := byte(bits.LeadingZeros64(h<<hllBits|1<<(hllBits-1)) + 1); r > d.regs[i] {
		d.regs[i] = r
	}
}

func (d *distinctCount) dense() {
	if d.regs == nil {
		d.regs = make([]byte, 1<<hllBits)
		for _, h := range d.hashes {
			d.add(h)
		}
		d.hashes = nil
	}
}

func (d *distinctCount) Merge(_ *Env, other Accumulator) {
	o := other.(*distinctCount)
	for _, h := range o.hashes {
		d.add(h)
	}
	if o.regs != nil {
		d.dense()
		for i, r := range o.regs {
			d.regs[i] = max(d.regs[i], r)
		}
	}
}

func (d *distinctCount) Result(*Env) record.Value {
	if d.regs == nil {
		return record.MakeInt(int64(len(d.hashes)))
	}
	const m = 1 << hllBits
	sum, zero := 0.0, 0
	for _, r := range d.regs {
		sum += math.Ldexp(1, -int(r))
		if r == 0 {
			zero++
		}
	}
	e := 0.7213 / (1 + 1.079/m) * m * m / sum
	if e <= 2.5*m && zero > 0 {
		e = m * math.Log(m/float64(zero))
	}
	return record.MakeInt(int64(e + 0.5))
}

func (d *distinctCount) AppendBinary(dst []byte) []byte {
	if d.regs != nil {
		return append(append(dst, 2), d.regs...)
	}
	dst = append(dst, 1)
	for _, h := range d.hashes {
		dst = binary.LittleEndian.AppendUint64(dst, h)
	}
	return dst
}

func (d *distinctCount) Restore(p []byte) error {
	switch {
	case len(p) == 1+1<<hllBits && p[0] == 2:
		d.regs = append([]byte(nil), p[1:]...)
		return nil
	case len(p) > 0 && p[0] == 1 && len(p)%8 == 1:
		for p = p[1:]; len(p) > 0; p = p[8:] {
			d.add(binary.LittleEndian.Uint64(p))
		}
		return nil
	}
	return errState
}

func (d *distinctCount) Size() int { return 48 + 8*cap(d.hashes) + len(d.regs) }
