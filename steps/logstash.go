package steps

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
)

// Foreign are names that users know from Logstash, with what to write instead: `"source": "field"`.
type Foreign map[string]string

// common are the options that every Logstash filter has.
var common = Foreign{
	"add_field": "a step `add: {FIELD: TEXT}` after it", "remove_field": "a step `remove: [FIELD, …]` after it",
	"add_tag": "a step `set: {tags: \"ARRAY_APPEND(COALESCE(tags, ARRAY[]), 'TAG')\"}` after it", "remove_tag": "a step `set: {tags: \"ARRAY_REMOVE(tags, 'TAG')\"}` after it",
	"tag_on_failure": "`on_error: keep` beside the step, which sets error.message and error.step", "id": "`name:` beside the step",
	"tag_on_timeout": "`on_error: keep` beside the step", "timeout_millis": "nothing: no expression takes longer than the text is long", "timeout_scope": "nothing",
	"enable_metric": "nothing", "periodic_flush": "nothing", "ecs_compatibility": "nothing: names are as you write them",
}

// Refuse reports the Logstash names among a mapping's keys and gives the mapping without them.
func (f Foreign) Refuse(c *config.Context, n *yaml.Node) *yaml.Node {
	r := config.Resolve(n)
	if r == nil || r.Kind != yaml.MappingNode {
		return n
	}
	out := *r
	out.Content = nil
	for i := 0; i+1 < len(r.Content); i += 2 {
		key := r.Content[i].Value
		what, ok := f[key]
		if !ok {
			what, ok = common[key]
		}
		if !ok {
			out.Content = append(out.Content, r.Content[i], r.Content[i+1])
			continue
		}
		if !strings.ContainsAny(what, " `") {
			what = "`" + what + "`"
		}
		c.Errorf(r.Content[i], "%q is Logstash's name; here it is %s", key, what)
	}
	return &out
}

// Decode is c.DecodeStruct without Logstash's names. ok is false where some were there.
func (f Foreign) Decode(c *config.Context, n *yaml.Node, into any, extra ...string) (ok bool) {
	before := c.Errs.Count()
	c.DecodeStruct(f.Refuse(c, n), into, extra...)
	return c.Errs.Count() == before
}

// OneOf gives the nearest of names, for errors: "; did you mean …".
func OneOf(s string, names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return config.Meant(s, names)
}
