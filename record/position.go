package record

// Position is a place in a split: the source's offset and, where one offset
// makes several records, the index within it. Position 0,0 is the split's start.
// A record's position is that of its first byte; a split's committed position
// is the one at which reading goes on.
type Position struct {
	Offset int64
	Index  int32
}

// Compare gives -1, 0 or 1.
func (p Position) Compare(q Position) int {
	switch {
	case p.Offset < q.Offset:
		return -1
	case p.Offset > q.Offset:
		return 1
	case p.Index < q.Index:
		return -1
	case p.Index > q.Index:
		return 1
	}
	return 0
}

// Split is one ordered stream of a source: a file, a queue, an outbox. Its ID
// never repeats for different data. The runner makes it; all but Index is
// constant, and Index is the runner's.
type Split struct {
	ID    string // unique within the pipeline
	Epoch int64  // raised by an operator's reset; positions compare within one epoch
	Path  string // what a person knows it by: the file's path, topic/queue
	Index int    // dense number within the running pipeline
	// Shared: other instances, with stores of their own, read it in turn, so that a sink which keeps positions may know a
	// later epoch. The source sets it before the first batch.
	Shared bool
}
