// Command loop runs one of the hand-written loops as a whole program, for cmd/ratios.
package main

import (
	"fmt"
	"os"

	"github.com/rsetl/rsetl/bench"
)

func main() {
	n, err := bench.RunLoop(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(n)
}
