package mysql

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"fmt"
	"slices"
)

const (
	firstPage = 64
	lastPage  = 10_000
	pageBytes = 8 << 20 // of keys and values that a read holds in memory at once, where one alone isn't larger
)

// entries are some rows of keyed state, in memory: no connection is open while callers get them.
type entries struct {
	buf  []byte
	rows []entryAt
	k    []byte // the last row's column k
}

type entryAt struct{ key, mid, end int } // in buf: the key, then the value

// fill reads the rows of a query for k, long_key and value until they are max bytes; whole: there were no more.
func (e *entries) fill(ctx context.Context, r reader, query string, max int) (whole bool, err error) {
	e.buf, e.rows = e.buf[:0], e.rows[:0]
	rows, err := r.QueryContext(ctx, query)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	var k, long, value stdsql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&k, &long, &value); err != nil {
			return false, err
		}
		key := k
		if long != nil {
			key = long
		}
		at := len(e.buf)
		e.buf = append(append(e.buf, key...), value...)
		e.rows = append(e.rows, entryAt{at, at + len(key), len(e.buf)})
		e.k = append(e.k[:0], k...)
		if len(e.buf) >= max {
			return false, nil
		}
	}
	return true, rows.Err()
}

func (e *entries) at(i int) (key, value []byte) {
	r := e.rows[i]
	return e.buf[r.key:r.mid:r.mid], e.buf[r.mid:r.end:r.end]
}

// Range reads in pages, each as of its own moment: a commit meanwhile, f's own too, may be seen by the rows behind. Keys longer
// than 1,900 bytes that begin with the same 1,900 come in an order of their own, the same each time. What f gets is valid during the call.
func (s *Store) Range(ctx context.Context, pipeline, stage string, prefix, after []byte, f func(key, value []byte) error) error {
	if err := checkNames(pipeline, stage); err != nil {
		return err
	}
	what := fmt.Sprintf("read the state of %s, step %s", pipeline, stage)
	id, err := s.find(ctx, pipeline)
	if err != nil {
		return s.wrap(what, err)
	}
	if id == 0 {
		return nil
	}
	where := fmt.Appendf(nil, "SELECT k, long_key, value FROM %s WHERE pipeline = %d AND stage = ", s.name.keyed, id)
	where = appendBlob(where, []byte(stage))
	begin := prefix[:min(len(prefix), maxKey)]
	if end := prefixEnd(begin); end != nil {
		where = appendBlob(append(where, " AND k < "...), end)
	}
	from, sign := begin, " AND k >= "
	if k, _ := stored(after); after != nil && bytes.Compare(k, from) >= 0 {
		from, sign = k, " AND k > "
	}
	var page entries
	for limit := firstPage; ; {
		query := append(bytes.Clone(where), sign...)
		query = fmt.Appendf(appendBlob(query, from), " ORDER BY k LIMIT %d", limit)
		whole, err := page.fill(ctx, s.db, string(query), s.o.pageBytes)
		if err != nil {
			return s.wrap(what, err)
		}
		for i := range page.rows {
			key, value := page.at(i)
			if !bytes.HasPrefix(key, prefix) {
				continue // they have the long prefix's beginning
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f(key, value); err != nil {
				return err
			}
		}
		n := len(page.rows)
		if whole && n < limit {
			return nil
		}
		from, sign = append(from[:0:0], page.k...), " AND k > "
		limit = max(min(4*limit, lastPage, s.o.pageBytes/max(len(page.buf)/n, 1)), 1)
	}
}

// Get gives f values that are valid during the call.
func (s *Store) Get(ctx context.Context, pipeline, stage string, keys [][]byte, f func(i int, value []byte) error) error {
	if err := checkNames(pipeline, stage); err != nil {
		return err
	}
	what := fmt.Sprintf("read the state of %s, step %s", pipeline, stage)
	id, err := s.find(ctx, pipeline)
	if err != nil {
		return s.wrap(what, err)
	}
	if id == 0 || len(keys) == 0 {
		return nil
	}
	order := make([]int32, len(keys)) // by the column k
	columns := keys
	for i, key := range keys {
		order[i] = int32(i)
		if k, long := stored(key); long {
			if &columns[0] == &keys[0] {
				columns = slices.Clone(keys)
			}
			columns[i] = k
		}
	}
	slices.SortFunc(order, func(i, j int32) int { return bytes.Compare(columns[i], columns[j]) })
	head := fmt.Appendf(nil, "SELECT k, long_key, value FROM %s FORCE INDEX (PRIMARY) WHERE pipeline = %d AND stage = ", s.name.keyed, id)
	head = append(appendBlob(head, []byte(stage)), " AND k IN ("...)
	var page entries
	var query []byte
	for pos := 0; pos < len(order); {
		query = append(query[:0], head...)
		end := pos
		for end < len(order) && end-pos < maxIn && (end == pos || len(query) < s.o.stmtBytes) {
			if end > pos {
				query = append(query, ',')
			}
			query = appendBlob(query, columns[order[end]])
			end++
		}
		query = append(query, ") ORDER BY k"...)
		whole, err := page.fill(ctx, s.db, string(query), s.o.pageBytes)
		if err != nil {
			return s.wrap(what, err)
		}
		for r := range page.rows {
			key, value := page.at(r)
			k, _ := stored(key)
			for pos < end && bytes.Compare(columns[order[pos]], k) < 0 {
				pos++
			}
			for ; pos < end && bytes.Equal(columns[order[pos]], k); pos++ {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := f(int(order[pos]), value); err != nil {
					return err
				}
			}
		}
		if whole {
			pos = end
		} // else the values are large: the rest of these keys again
	}
	return nil
}
