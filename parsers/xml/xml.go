// Package xml parses XML documents.
package xml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("xml", steps.Spec{
		Doc: config.Doc{
			Summary: "Parses an XML document and makes fields of its elements and attributes.",
			Details: "The members of the root element go below `target`: its attributes and elements by their names, without namespaces. An element with nothing but text is a text; one with attributes or elements is an object, whose own text is its member `content`. " +
				"Elements that come several times are an array; with `force_array` those that come once are one too. An empty element is an empty text, or is left out with `suppress_empty: true`. Blanks around texts don't count; comments and processing instructions are left out.\n\n" +
				"Entities that a document defines itself are not resolved: one that is used is a failure, and so is anything that is not well-formed. What is below `target` already is replaced.",
			Example: "- xml: {field: message, target: doc}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `xml: {field, target, …}`.
type Config struct {
	Field    steps.FieldPath `yaml:"field" doc:"The field to parse; message by default."`
	Target   steps.FieldPath `yaml:"target,required" doc:"The path below which the fields go."`
	Force    bool            `yaml:"force_array" doc:"Every element is an array, also where it comes once."`
	Suppress bool            `yaml:"suppress_empty" doc:"Leave out elements that are empty."`
	MaxDepth int             `yaml:"max_depth" doc:"The deepest nesting that is accepted." default:"64" min:"1"`
	MaxNodes int             `yaml:"max_fields" doc:"The most elements and attributes that one document may have." default:"10000" min:"1"`
}

var foreign = steps.Foreign{"source": "field", "store_xml": "nothing: the document is stored below target", "xpath": "a step `set` with paths below target", "force_content": "nothing", "remove_namespaces": "nothing: names have none",
	"namespaces": "nothing: names have none", "parse_options": "nothing"}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if !foreign.Decode(c, n, k) {
		return
	}
	if k.Field.Name == "" {
		k.Field.Name, k.Field.Node = "message", n
	}
	if record.IsMeta(k.Target.Name) {
		c.Errorf(k.Target.Node, "target: %s is metadata and can't be set", k.Target.Name)
	}
	if k.MaxDepth > maxDepth {
		c.Errorf(n, "max_depth is at most %d", maxDepth)
	}
}

const maxDepth = 512

// JSONSchema describes the options.
func (Config) JSONSchema() map[string]any {
	type long Config
	return config.Schema(long{})
}

func (k *Config) Declare(d *steps.Decl) {
	d.Read(k.Field.Name, k.Field.Node)
	steps.DeclareTarget(d, k.Target.Name)
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	field := b.Slot(k.Field.Name)
	return func() steps.Step {
		s := &step{Config: k, field: field, found: steps.NewFound(b, k.Target.Name, k.MaxNodes)}
		s.each = s.one
		return s
	}, nil
}

type step struct {
	*Config
	field int
	found *steps.Found
	each  func(int) record.Outcome
	b     *record.Batch
	in    bytes.Reader
	nodes int
	items []record.Value
}

func (s *step) Apply(b *record.Batch) {
	s.b = b
	s.found.Batch(b)
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	src, msg := steps.Text(s.b, i, s.field, "xml")
	if msg == "" {
		s.found.Begin()
		if err := s.parse(s.b.Bytes(src)); err != nil {
			msg = "xml: " + err.Error()
		}
	}
	if msg != "" {
		s.b.Fail(i, msg)
		return record.Failed
	}
	s.found.Put(i)
	return record.Keep
}

// member is a member of an element: an attribute, a text, or the elements of one name.
type member struct {
	name   string
	vals   []record.Value
	single bool // an attribute
}

// element is an element that is open.
type element struct {
	name    string
	members []member
	index   map[string]int // where there are many
	text    []byte
}

const fewMembers = 16

func (e *element) member(name string) *member {
	if e.index != nil {
		if i, ok := e.index[name]; ok {
			return &e.members[i]
		}
		e.index[name] = len(e.members)
	} else {
		for i := range e.members {
			if e.members[i].name == name {
				return &e.members[i]
			}
		}
		if len(e.members) == fewMembers {
			e.index = map[string]int{name: fewMembers}
			for i := range e.members {
				e.index[e.members[i].name] = i
			}
		}
	}
	e.members = append(e.members, member{name: name})
	return &e.members[len(e.members)-1]
}

func (s *step) parse(text []byte) error {
	s.in.Reset(text)
	d := xml.NewDecoder(&s.in)
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // texts are UTF-8 here
	s.nodes = 0
	var open []element
	for {
		tok, err := d.Token()
		if err != nil {
			if err == io.EOF {
				return errors.New("there is no element")
			}
			var syntax *xml.SyntaxError
			if errors.As(err, &syntax) {
				return fmt.Errorf("line %d: %s", syntax.Line, syntax.Msg)
			}
			return err
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			if s.nodes += 1 + len(tok.Attr); s.nodes > s.MaxNodes {
				return errors.New("more than max_fields elements and attributes")
			}
			if len(open) == s.MaxDepth {
				return errors.New("nested deeper than max_depth")
			}
			e := element{name: tok.Name.Local}
			for _, a := range tok.Attr {
				if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
					continue
				}
				m := e.member(a.Name.Local)
				m.vals, m.single = append(m.vals, s.b.PutString(a.Value)), true
			}
			open = append(open, e)
		case xml.CharData:
			if n := len(open); n > 0 {
				open[n-1].text = append(open[n-1].text, tok...)
			} else if len(bytes.TrimSpace(tok)) > 0 {
				return fmt.Errorf("a text before the first element: %.40q", tok)
			}
		case xml.EndElement:
			n := len(open) - 1
			e := &open[n]
			if n == 0 {
				return s.root(d, e)
			}
			v, ok := s.value(e)
			name := e.name
			open = open[:n]
			if ok {
				m := open[n-1].member(name)
				m.vals, m.single = append(m.vals, v), false
			}
		}
	}
}

// value is what an element that has ended is; ok is false where it is left out.
func (s *step) value(e *element) (v record.Value, ok bool) {
	text := bytes.TrimSpace(e.text)
	if len(e.members) == 0 {
		if len(text) == 0 && s.Suppress {
			return v, false
		}
		return s.b.PutBytes(text), true
	}
	s.items = s.items[:0]
	for i := range e.members {
		m := &e.members[i]
		s.items = append(s.items, s.b.PutString(m.name), s.of(m))
	}
	if len(text) > 0 {
		s.items = append(s.items, s.b.PutString("content"), s.b.PutBytes(text))
	}
	return s.b.PutItems(record.Map, s.items), true
}

func (s *step) of(m *member) record.Value {
	if len(m.vals) == 1 && (m.single || !s.Force) {
		return m.vals[0]
	}
	return s.b.PutItems(record.Array, m.vals)
}

// root makes fields of the root element, behind which nothing may follow.
func (s *step) root(d *xml.Decoder, e *element) error {
	for {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			return fmt.Errorf("a second root element <%s>", tok.Name.Local)
		case xml.CharData:
			if len(bytes.TrimSpace(tok)) > 0 {
				return fmt.Errorf("a text behind the last element: %.40q", tok)
			}
		}
	}
	ok := true
	for i := range e.members {
		m := &e.members[i]
		ok = ok && s.found.AddObject([]byte(m.name), s.of(m))
	}
	if text := bytes.TrimSpace(e.text); len(text) > 0 {
		ok = ok && s.found.Add([]byte("content"), s.b.PutBytes(text))
	}
	if !ok {
		return errors.New("more than max_fields fields")
	}
	return nil
}
