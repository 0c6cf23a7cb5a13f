// Package file reads text files: logs that grow and rotate, whole files, compressed ones.
//
// One goroutine reads all files in turn and looks for new ones; a second one hands what was read to
// the runner, so that new files are seen, and held open, also while the pipeline is blocked.
package file

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/internal/limits"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/sources/text"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	sources.MustRegister("file", sources.Spec{
		Doc: config.Doc{
			Summary: "Reads lines from files: plain, gzip and zstd, growing and rotating ones.",
			Details: details,
			Example: "file:\n  paths: [/var/log/nginx/*.log]\n  start: beginning\n",
		},
		New:   func() sources.Config { return &Config{} },
		Lines: true,
	})
}

const details = `A line ends with LF or CRLF, which is not part of it. A line without its ending waits for
it; where the file is finished (` + "`follow: false`, `--once`" + `, rotated away) it is a record. Empty lines are records.

The text is the field ` + "`message`" + `. Bytes that are not UTF-8, and NUL, stay in it as they are; JSON output shows
U+FFFD for what is not UTF-8. With ` + "`encoding`" + ` the text is converted to UTF-8. A byte order mark at the file's beginning is skipped.

A line longer than ` + "`max_line`" + ` is a dead letter with its first bytes; its rest is skipped.

With ` + "`multiline`" + `, lines are joined with LF. A record is committed once it is complete, so after a restart an open one
comes whole. The limits are Logstash's: a record ends when it has more lines than ` + "`max_lines`" + `. A record of nothing but empty lines is skipped.

Files whose content begins as gzip or zstd files do are decompressed; offsets are those of the content.

A file is known by device and inode, and by its first KiB and the 256 bytes before the position. Renamed, it goes on where it
was; truncated or replaced, it is read from the beginning. What is cut off before it was read is counted as lost.

Metadata: ` + "`@path`, `@offset` (of the line's first byte), `@split`, `@received`, `@source`."

// Config is the options of the source.
type Config struct {
	Paths      []string        `yaml:"paths,required" doc:"The files, relative to the working directory: paths and globs with *, ?, [a-z], {a,b} and ** (any folders)."`
	Exclude    []string        `yaml:"exclude" doc:"Files not to read: globs of paths, or of names where there is no slash."`
	Start      string          `yaml:"start" doc:"Where files begin that are there when the pipeline starts for the first time; later ones begin at their beginning. Default: end; beginning where nothing is followed." enum:"beginning,end"`
	Follow     bool            `yaml:"follow" doc:"Go on when the end is reached: wait for more, and for more files." default:"true"`
	Poll       config.Duration `yaml:"poll" doc:"How often a file that had nothing new is looked at; a fifth as often where the operating system tells of every change (a local file system that can be watched)." default:"1s"`
	Scan       config.Duration `yaml:"scan" doc:"How often new files are looked for. Notices of the operating system make it sooner." default:"10s"`
	MaxLine    config.Size     `yaml:"max_line" doc:"The longest line." default:"1MiB" min:"1"`
	MaxOpen    int             `yaml:"max_open" doc:"How many files are held open at most; idle ones are closed first." default:"512" min:"1"`
	RotateWait config.Duration `yaml:"rotate_wait" doc:"How long a file that was renamed away or deleted is still read after its last growth." default:"5s"`
}

// Declare tells what the source writes.
func (c *Config) Declare(d *steps.Decl) {
	text.Declare(d)
	if len(c.Paths) == 0 {
		d.Errorf(nil, "paths", "give at least one path")
	}
	for _, p := range append(append([]string(nil), c.Paths...), c.Exclude...) {
		if p == "" || !doublestar.ValidatePathPattern(p) {
			d.Errorf(nil, "paths", "%q is not a path or glob", p)
		}
	}
}

// Follows says what a run waits for; "" where it ends by itself.
func (c *Config) Follows() string {
	if !c.Follow {
		return ""
	}
	s := "following " + strings.Join(c.Paths, ", ")
	if c.Start != "beginning" {
		s += " from the end of what is there (start: beginning reads that too)"
	}
	return s
}

// Build makes the source.
func (c *Config) Build(b *sources.Build) (sources.Source, error) {
	f, err := text.FromBuild(b, int(c.MaxLine))
	if err != nil {
		return nil, err
	}
	s := &Source{
		cfg: *c, format: f, table: b.Table, once: b.Once || !c.Follow,
		now: b.Clock, log: b.Log, block: blockSize, notify: true,
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.atEnd = c.Start == "end" || c.Start == "" && !s.once
	s.cfg.MaxOpen = min(s.cfg.MaxOpen, max(1, limits.OpenFiles()/2))
	if s.cfg.Poll <= 0 {
		s.cfg.Poll = config.Duration(time.Second)
	}
	if s.cfg.Scan <= 0 {
		s.cfg.Scan = config.Duration(10 * time.Second)
	}
	s.cfg.Paths = absolute(c.Paths)
	for _, p := range c.Exclude {
		if filepath.Base(p) != p {
			p = absolute([]string{p})[0]
		}
		s.exclude = append(s.exclude, p)
	}
	return s, nil
}

func absolute(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		if a, err := filepath.Abs(p); err == nil {
			p = a
		}
		out[i] = p
	}
	return out
}
