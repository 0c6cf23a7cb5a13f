package rocketmq

import (
	"context"
	"encoding/json"
	"strconv"
)

// CreateTopic makes a topic at a broker, or changes its queues.
func (c *Client) CreateTopic(ctx context.Context, addr, topic string, read, write, perm int, attributes string) error {
	ctx, cancel := short(ctx)
	defer cancel()
	f := map[string]string{"topic": c.Wrap(topic), "defaultTopic": "TBW102", "readQueueNums": strconv.Itoa(read), "writeQueueNums": strconv.Itoa(write),
		"perm": strconv.Itoa(perm), "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}
	if attributes != "" {
		f["attributes"] = attributes
	}
	_, err := c.must(ctx, "create topic "+topic, addr, codeCreateTopic, f, nil)
	return err
}

// CreateUser makes a user at a broker with access control (5.3 and later), who may do those actions with those resources, such as Topic:*.
func (c *Client) CreateUser(ctx context.Context, addr, name, secret string, resources, actions []string) error {
	ctx, cancel := short(ctx)
	defer cancel()
	user, err := json.Marshal(map[string]string{"username": name, "password": secret, "userType": "Normal", "userStatus": "enable"})
	if err != nil {
		return err
	}
	if _, err := c.must(ctx, "create user "+name, addr, codeCreateUser, map[string]string{"username": name}, user); err != nil {
		return err
	}
	var entries []any
	for _, r := range resources {
		entries = append(entries, map[string]any{"resource": r, "actions": actions, "decision": "Allow"})
	}
	acl, err := json.Marshal(map[string]any{"subject": "User:" + name, "policies": []any{map[string]any{"policyType": "Custom", "entries": entries}}})
	if err != nil {
		return err
	}
	_, err = c.must(ctx, "rights of user "+name, addr, codeCreateACL, map[string]string{"subject": "User:" + name}, acl)
	return err
}
