package config

import "gopkg.in/yaml.v3"

// Text is a text whose form is checked later, such as a URL or a DSN.
type Text struct {
	Value string
	Node  *yaml.Node
	// Unknown: a variable in it can't be resolved (rsetl check), Value holds a stand-in.
	Unknown bool
}

// UnmarshalConfig reads the text.
func (t *Text) UnmarshalConfig(c *Context, n *yaml.Node) {
	t.Node = n
	t.Value, _ = c.Scalar(n, "a text")
	t.Unknown = !c.Known()
}

// JSONSchema is how it appears in the schema.
func (Text) JSONSchema() map[string]any { return map[string]any{"type": "string"} }
