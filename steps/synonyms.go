package steps

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
)

// Synonyms are names that people try for an option, with what it is called here.
type Synonyms map[string]string

// Decode is c.DecodeStruct, also without Logstash's common names. ok is false where some of either were there.
func (s Synonyms) Decode(c *config.Context, n *yaml.Node, into any) (ok bool) {
	r := config.Resolve(n)
	if r == nil || r.Kind != yaml.MappingNode {
		return Foreign{}.Decode(c, n, into)
	}
	before := c.Errs.Count()
	out := *r
	out.Content = nil
	for i := 0; i+1 < len(r.Content); i += 2 {
		if here, is := s[r.Content[i].Value]; is {
			c.Errorf(r.Content[i], "there is no key %q; here it is `%s`", r.Content[i].Value, here)
			continue
		}
		out.Content = append(out.Content, r.Content[i], r.Content[i+1])
	}
	decoded := Foreign{}.Decode(c, &out, into)
	return decoded && c.Errs.Count() == before
}
