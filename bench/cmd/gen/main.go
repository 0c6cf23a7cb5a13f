// Command gen writes a file of generated log lines: gen apache|json SIZE FILE, the size in bytes or as 1GiB.
package main

import (
	"fmt"
	"os"

	"github.com/rsetl/rsetl/bench"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: gen apache|json SIZE FILE")
		os.Exit(1)
	}
	size, err := bench.ParseSize(os.Args[2])
	if err == nil {
		var n int64
		if n, err = bench.WriteFile(os.Args[3], bench.Kind(os.Args[1]), size); err == nil {
			fmt.Println(n)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
