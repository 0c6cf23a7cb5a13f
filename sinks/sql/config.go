// Package sql is what the SQL sinks share: table and column options, the encoded
// form of rows, and delivery in transactions that carry the position with the rows.
// A dialect (sqlite, mysql) supplies connections and statements.
package sql

import (
	"strings"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/steps"
)

// Options are the keys that all SQL sinks have.
type Options struct {
	Table       string                 `yaml:"table,required" doc:"The table."`
	Columns     config.Map[steps.Expr] `yaml:"columns" doc:"Columns and the expressions that fill them; without it every field goes into the column of its name."`
	CreateTable bool                   `yaml:"create_table" doc:"Create the table where it is missing, and columns as fields turn up."`
	Mode        string                 `yaml:"mode" doc:"insert: a row each; upsert: update the row with the same key; replace: put the new row in its place; ignore: leave the old one." enum:"insert,upsert,replace,ignore" default:"insert"`
	Key         []string               `yaml:"key" doc:"The columns that tell rows apart, for upsert, replace and ignore; create_table makes them unique."`
	IfExists    string                 `yaml:"if_exists" doc:"What to do with a table that is there at the pipeline's first start: append to it, replace it (drop it and its rows), or fail. Later starts always go on with it." enum:"append,replace,fail" default:"append"`
}

// Column is one column known to the plan.
type Column struct {
	Name string
	Type expr.Type // ANY where the plan doesn't know
	slot int
	prog *expr.Program
	// unsure: the data may bring it; it becomes a column when it does.
	unsure bool
}

// Declare tells what the sink reads and checks what can be checked without the plan.
func (o *Options) Declare(d *steps.Decl) {
	if len(o.Columns) == 0 {
		d.ReadAll = true
	}
	for i := range o.Columns {
		d.ReadExpr(&o.Columns[i].Value)
	}
	if o.Mode != "insert" && len(o.Key) == 0 {
		d.Errorf(nil, "", "mode %s needs `key: [column, …]`: the columns that tell rows apart", o.Mode)
	}
	if strings.TrimSpace(o.Table) == "" {
		d.Errorf(nil, "", "table is empty")
	}
	if o.IfExists == "replace" && !o.CreateTable {
		d.Errorf(nil, "", "if_exists: replace drops the table, so it needs `create_table: true` to make it anew")
	}
}

// Compile makes the columns.
func (o *Options) Compile(b *steps.Build) []Column {
	var cols []Column
	if len(o.Columns) > 0 {
		for i := range o.Columns {
			c := &o.Columns[i]
			if p := b.Expr(&c.Value); p != nil {
				cols = append(cols, Column{Name: c.Key, Type: p.Type(), prog: p, slot: -1})
			}
		}
	} else {
		for _, name := range b.Ship {
			cols = append(cols, Column{Name: name, Type: b.TypeOf(name), slot: b.Slot(name), unsure: b.Unsure != nil && b.Unsure(name)})
		}
	}
	seen := map[string]string{}
	var names []string
	for _, c := range cols {
		low := strings.ToLower(c.Name)
		if other, ok := seen[low]; ok {
			b.Errorf(nil, "", "columns %q and %q differ in case only; a table can't have both: use `columns`", other, c.Name)
		}
		seen[low] = c.Name
		names = append(names, c.Name)
	}
	open := b.OpenEnded && len(o.Columns) == 0
	for _, k := range o.Key {
		if _, ok := seen[strings.ToLower(k)]; !ok && !open {
			b.Errorf(nil, "", "key: no column is named %q%s", k, config.Meant(k, names))
		}
	}
	if len(cols) == 0 && !open && !b.Errs.Failed() {
		b.Errorf(nil, "", "no field is left to write; see what `remove` and `keep` take away")
	}
	return cols
}

// Guarantee is the text for `rsetl explain`.
func (o *Options) Guarantee() string {
	return "exactly once in effect: rows and position commit in one transaction, and rows at or below the position are skipped; " +
		"void where the table rsetl_positions is changed by hand"
}

// row encodes a record: its columns in order, then fields the plan doesn't know.
type encoder struct {
	cols  []Column
	maybe []Column // fields with a slot that are columns where a record has them
	extra bool     // overflow fields are columns too
	lits  Literals // nil: cells
}

func (e *encoder) value(dst []byte, b *record.Batch, v record.Value) []byte {
	if e.lits != nil {
		return appendLiteral(dst, e.lits, b, v)
	}
	return appendValue(dst, b, v)
}

func (e *encoder) append(dst []byte, b *record.Batch, i int, env *expr.Env) []byte {
	env.B = b
	row := 0
	if e.lits != nil {
		dst, row = beginLiterals(dst, len(e.cols))
	}
	for k := range e.cols {
		c := &e.cols[k]
		v := record.Value{}
		if c.prog != nil {
			v = c.prog.Eval(env, i)
		} else {
			v = b.Get(i, c.slot)
		}
		if e.lits != nil {
			dst = appendColumn(dst, row, k, e.lits, b, v)
		} else {
			dst = appendValue(dst, b, v)
		}
	}
	named := len(dst)
	for k := range e.maybe {
		if v := b.Get(i, e.maybe[k].slot); v.Kind() != record.Missing {
			dst = appendText(dst, []byte(e.maybe[k].Name))
			dst = e.value(dst, b, v)
		}
	}
	if e.extra && b.HasOverflow(i) {
		for name, v := range b.Overflow(i) {
			text := b.Bytes(name)
			if record.IsMeta(string(text)) {
				continue
			}
			dst = appendText(dst, text)
			dst = e.value(dst, b, v)
		}
	}
	if e.lits != nil && len(dst) > named {
		dst[row] = 0
	}
	return dst
}

var _ sinks.Positioned = (*Sink)(nil)
