package file

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/rsetl/rsetl/state"
)

// Lag gives the bytes of the file behind the split's committed position, where the file is still at its path. Of
// compressed files it is not known.
func (s *Source) Lag(sp *state.Split) (int64, bool) {
	switch filepath.Ext(sp.Path) {
	case ".gz", ".zst":
		return 0, false
	}
	st, err := os.Stat(sp.Path)
	if err != nil {
		return 0, false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if m := decodeMeta(sp.Meta); !ok || uint64(sys.Dev) != m.id.dev || sys.Ino != m.id.ino {
		return 0, false
	}
	return max(st.Size()-sp.Position().Offset, 0), true
}
