package rocketmq

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Queue is one queue of a topic at a broker.
type Queue struct {
	Topic  string
	Broker string
	ID     int
}

func (q Queue) String() string { return fmt.Sprintf("%s/%s/%d", q.Topic, q.Broker, q.ID) }

// Route is where a topic's queues are.
type Route struct {
	Topic   string
	Read    []Queue // by broker and number
	Write   []Queue
	Masters map[string]string // broker: its master's address; slaves only: missing
	Cluster map[string]string // broker: its cluster
}

// ErrStatic: the topic has logical queues, which this client doesn't read or write.
type ErrStatic struct{ Topic string }

func (e *ErrStatic) Error() string {
	return fmt.Sprintf("topic %s is a static topic: its queues are logical ones that move between brokers, and a client that doesn't know them gets a part of the messages only; use an ordinary topic", e.Topic)
}

const permRead, permWrite = 4, 2

// bareKeys are JSON keys that are numbers without quotes, as old name servers write them.
var bareKeys = regexp.MustCompile(`([{,])(\d+):`)

// Route asks the name servers for a topic. A topic that doesn't exist is an *Error with TopicMissing.
func (c *Client) Route(ctx context.Context, topic string) (*Route, error) {
	topic = c.Wrap(topic)
	var body []byte
	err := c.nameServers(ctx, func(ctx context.Context, addr string) error {
		a, err := c.must(ctx, "route of topic "+topic, addr, codeRoute, map[string]string{"topic": topic, "acceptStandardJsonOnly": "true"}, nil)
		if err == nil {
			body = a.Body
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return parseRoute(topic, body)
}

func parseRoute(topic string, body []byte) (*Route, error) {
	var data struct {
		BrokerDatas []struct {
			BrokerName  string            `json:"brokerName"`
			Cluster     string            `json:"cluster"`
			BrokerAddrs map[string]string `json:"brokerAddrs"`
		} `json:"brokerDatas"`
		QueueDatas []struct {
			BrokerName string `json:"brokerName"`
			Perm       int    `json:"perm"`
			Read       int    `json:"readQueueNums"`
			Write      int    `json:"writeQueueNums"`
		} `json:"queueDatas"`
		Mapping map[string]json.RawMessage `json:"topicQueueMappingByBroker"`
	}
	err := json.Unmarshal(body, &data)
	if err != nil {
		err = json.Unmarshal(bareKeys.ReplaceAll(body, []byte(`$1"$2":`)), &data)
	}
	if err != nil {
		return nil, fmt.Errorf("route of topic %s: %w", topic, err)
	}
	if len(data.Mapping) > 0 {
		return nil, &ErrStatic{topic}
	}
	r := &Route{Topic: topic, Masters: map[string]string{}, Cluster: map[string]string{}}
	for _, b := range data.BrokerDatas {
		if a := b.BrokerAddrs["0"]; a != "" {
			r.Masters[b.BrokerName] = a
		}
		r.Cluster[b.BrokerName] = b.Cluster
	}
	for _, q := range data.QueueDatas {
		if q.Read > maxQueues || q.Write > maxQueues {
			return nil, fmt.Errorf("route of topic %s: %d queues at %s", topic, max(q.Read, q.Write), q.BrokerName)
		}
		if q.Perm&permRead != 0 {
			for i := range q.Read {
				r.Read = append(r.Read, Queue{topic, q.BrokerName, i})
			}
		}
		if q.Perm&permWrite != 0 && r.Masters[q.BrokerName] != "" {
			for i := range q.Write {
				r.Write = append(r.Write, Queue{topic, q.BrokerName, i})
			}
		}
	}
	slices.SortFunc(r.Read, compareQueues)
	slices.SortFunc(r.Write, compareQueues)
	return r, nil
}

const maxQueues = 1 << 16

func compareQueues(a, b Queue) int {
	return cmp.Or(strings.Compare(a.Topic, b.Topic), strings.Compare(a.Broker, b.Broker), cmp.Compare(a.ID, b.ID))
}

// Allocate gives the queues of one member: those that Java's and Go's clients give it by default, so that groups
// may be mixed. queues and members are sorted. ok is false where the member isn't among them.
func Allocate(queues []Queue, members []string, me string) (mine []Queue, ok bool) {
	i := slices.Index(members, me)
	if i < 0 {
		return nil, false
	}
	n, m := len(queues), len(members)
	mod, size := n%m, 1
	if n > m {
		size = n / m
		if i < mod {
			size++
		}
	}
	start := i * size
	if mod == 0 || i >= mod {
		start += mod
	}
	if n <= m {
		start = i
	}
	if start >= n {
		return nil, true
	}
	return queues[start:min(n, start+size)], true
}
