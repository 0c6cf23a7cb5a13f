package rocketmq

import (
	"bufio"
	"net"
	"sync"
)

// Serve answers requests on l, each with what f makes of it, until l is closed and the connections have ended: a server
// for the tests of those who use a Client. Where f gives nil the connection is closed.
func Serve(l net.Listener, f func(*Command) *Command) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		wg.Go(func() {
			defer nc.Close()
			r := bufio.NewReader(nc)
			for {
				cmd, err := readFrame(r)
				if err != nil {
					return
				}
				a := f(cmd)
				if a == nil {
					return
				}
				a.Opaque, a.Flag, a.Lang, a.Type = cmd.Opaque, flagAnswer, "JAVA", "JSON"
				out, err := appendFrame(nil, a)
				if err != nil {
					return
				}
				if _, err := nc.Write(out); err != nil {
					return
				}
			}
		})
	}
}
