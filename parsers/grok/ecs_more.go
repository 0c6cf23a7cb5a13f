package grok

// moreECS are definitions that go-grok lacks, or gives other names than Logstash does.
var moreECS = Dictionary{}
