package rocketmq

import (
	"context"
	"errors"
	"fmt"

	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/sources"
)

var _ sources.Prober = (*Source)(nil)

// Probe looks the topics up and asks each broker for the group's offset.
func (s *Source) Probe(ctx context.Context) error {
	c, err := s.cfg.Connection.Client(nil)
	if err != nil {
		return err
	}
	defer c.Close()
	var errs []error
	for _, t := range s.order {
		r, err := c.Route(ctx, t.Name)
		switch {
		case rocketmq.IsCode(err, rocketmq.TopicMissing):
			errs = append(errs, fmt.Errorf("topic %s doesn't exist; create it, as with `mqadmin updateTopic`: %w", t.Name, err))
			continue
		case err != nil:
			return errors.Join(append(errs, err)...)
		case len(r.Read) == 0:
			errs = append(errs, fmt.Errorf("topic %s has no queue that may be read", t.Name))
		}
		asked := map[string]bool{}
		for _, q := range r.Read {
			if asked[q.Broker] {
				continue
			}
			asked[q.Broker] = true
			if addr := r.Masters[q.Broker]; addr == "" {
				err = fmt.Errorf("broker %s has no master", q.Broker)
			} else {
				_, _, err = c.Offset(ctx, addr, s.cfg.Group, q)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("group %s, topic %s: %w", s.cfg.Group, t.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}
