package pipeline

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/internal/mysqlconn"
)

// Kept is `state:`, where a pipeline's positions, counts, windows and outbox are.
type Kept struct {
	Remote *Remote // nil: the state directory
}

// Remote is a store that several machines share.
type Remote struct {
	DSN    config.Text     `yaml:"dsn,required" doc:"The MySQL or MariaDB database that holds the state: user:password@tcp(host:3306)/database."`
	Prefix string          `yaml:"prefix" doc:"What its tables' names begin with." default:"rsetl_"`
	Lease  config.Duration `yaml:"lease" doc:"How long an instance that was cut off keeps the pipeline from the others." default:"5s"`

	where string // host and database, without the password
}

// Where is the server and the database, for people.
func (r *Remote) Where() string { return r.where }

// Kind is local or remote.
func (k *Kept) Kind() string {
	if k.Remote != nil {
		return "remote"
	}
	return "local"
}

const keptForms = "write local, or {remote: {dsn: 'user:password@tcp(host:3306)/database'}}"

var tablePrefix = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,31}$`)

// UnmarshalConfig reads `local` or `{remote: {…}}`.
func (k *Kept) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	n = config.Resolve(n)
	if n.Kind != yaml.MappingNode {
		switch s, ok := c.Scalar(n, keptForms); {
		case !ok, s == "local":
		case s == "remote":
			c.Errorf(n, "remote: where? %s", keptForms)
		default:
			c.Errorf(n, "unknown value %q; %s", s, keptForms)
		}
		return
	}
	var long struct {
		Remote Remote `yaml:"remote,required" doc:"In a database."`
	}
	c.DecodeStruct(n, &long)
	r := &long.Remote
	k.Remote = r
	if r.DSN.Node == nil { // missing, and said so
		return
	}
	if !tablePrefix.MatchString(r.Prefix) {
		c.Errorf(n, "prefix: %q can't begin a table's name; write letters, digits and _, at most 32", r.Prefix)
	}
	if d := r.Lease.D(); d < time.Second || d > time.Hour {
		c.Errorf(n, "lease: %s: want 1s to 1h; for so long no other instance takes the pipeline over after a crash, and for so long the database may be out of reach", r.Lease)
	}
	if r.DSN.Unknown {
		return
	}
	p, why := mysqlconn.Check(r.DSN.Value)
	if why != "" {
		c.Errorf(r.DSN.Node, "%s", why)
	}
	if p == nil {
		return
	}
	if p.Passwd != "" {
		c.Errs.Hide(p.Passwd)
	}
	r.where = fmt.Sprintf("%s/%s", p.Addr, p.DBName)
	if r.Prefix != "rsetl_" {
		r.where += " (" + r.Prefix + ")"
	}
}

// JSONSchema is how it appears in the schema.
func (Kept) JSONSchema() map[string]any {
	text := map[string]any{"type": "string"}
	remote := map[string]any{"type": "object", "properties": map[string]any{"dsn": text, "prefix": text, "lease": text}, "required": []string{"dsn"}, "additionalProperties": false}
	return map[string]any{"anyOf": []any{
		map[string]any{"enum": []string{"local"}},
		map[string]any{"type": "object", "properties": map[string]any{"remote": remote}, "required": []string{"remote"}, "additionalProperties": false},
	}}
}

// explainState says where the state is and what it survives.
func (p *Plan) explainState(w io.Writer) {
	if r := p.Options.State.Remote; r != nil {
		fmt.Fprintf(w, "state: remote, in the tables %s… of %s: survives this machine; of several instances one runs the pipeline, and another takes over when it stops, or %s after it was last heard of\n", r.Prefix, r.Where(), r.Lease)
		return
	}
	fmt.Fprint(w, "state: local, in the state directory: survives kills and restarts, not the loss of that folder\n")
	if slices.ContainsFunc(p.Nodes, func(n *Node) bool { return n.Stage }) {
		fmt.Fprint(w, "  steps that keep state by keys need every queue of a consumer group to themselves: another member of the group is refused\n")
	}
}
