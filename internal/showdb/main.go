// Command showdb prints the rows of a query on a SQLite file: for the demo, where no sqlite3 is installed.
package main

import (
	"fmt"
	"log"
	"os"
	"text/tabwriter"

	"github.com/ncruces/go-sqlite3"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: showdb FILE QUERY")
	}
	c, err := sqlite3.OpenFlags(os.Args[1], sqlite3.OPEN_READONLY)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	st, _, err := c.Prepare(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	for i := range st.ColumnCount() {
		fmt.Fprintf(w, "%s\t", st.ColumnName(i))
	}
	fmt.Fprintln(w)
	for st.Step() {
		for i := range st.ColumnCount() {
			fmt.Fprintf(w, "%s\t", st.ColumnText(i))
		}
		fmt.Fprintln(w)
	}
	if err := st.Err(); err != nil {
		log.Fatal(err)
	}
	w.Flush()
}
