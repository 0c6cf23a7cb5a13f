package rocketmq

import (
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/steps"
)

// Each mistake is told, with what to write instead.
func TestMistakes(t *testing.T) {
	good := "name_servers: ['a:1'], group: g, topics: [{name: t}]"
	for text, want := range map[string]string{
		good:                                   "",
		good + ", start: 2026-01-31T00:00:00Z": "",
		"name_servers: ['mq.example.org:9876', '[::1]:9876'], group: g, topics: [{name: t, sql: 'a > 5'}, {name: u, tags: 'a || b'}]": "",
		"name_servers: [], group: g, topics: [{name: t}]":                         "at least one name server",
		"name_servers: ['a'], group: g, topics: [{name: t}]":                      `"a" is not host:port`,
		"name_servers: ['a:1'], group: '', topics: [{name: t}]":                   "consumer group",
		"name_servers: ['a:1'], group: g, topics: []":                             "at least one topic",
		"name_servers: ['a:1'], group: g, topics: [{name: t}, {name: t}]":         "t is there twice",
		"name_servers: ['a:1'], group: g, topics: [{name: t, tags: a, sql: b}]":   "not both",
		"name_servers: ['a:1'], group: g, topics: [{name: t, tags: ' || '}]":      "names no tag",
		good + ", start: yesterday":                                               `"yesterday" is not first, last or a time`,
		good + ", access_key: x":                                                  "go together",
		good + ", tls: {cert: x}":                                                 "cert and key go together",
		"name_servers: ['a:1'], consumer_group: g, topics: [{name: t}], group: g": "here it is `group`",
		"name_servers: ['a:1'], topic: t, topics: [{name: t}], group: g":          "here it is `topics:",
		"name_servers: ['a:1'], gruop: g, topics: [{name: t}], group: g":          `did you mean "group"`,
	} {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte("{"+text+"}"), &doc); err != nil {
			t.Fatal(err)
		}
		c := &Config{}
		errs := &config.Errors{File: "test"}
		x := &config.Context{Errs: errs, Lookup: func(string) (string, bool) { return "", false }}
		x.In("source", func() { x.Decode(doc.Content[0], c) })
		if !errs.Failed() {
			c.Declare(&steps.Decl{Errs: errs, Node: doc.Content[0]})
		}
		err := errs.Err()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
