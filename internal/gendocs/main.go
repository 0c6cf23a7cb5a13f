// Command gendocs writes docs/reference and the JSON Schema from the structs that the loader fills.
package main

import (
	"log"
	"os"
	"path/filepath"

	_ "github.com/rsetl/rsetl/internal/components"
	"github.com/rsetl/rsetl/pipeline"
)

//go:generate go run .

func main() {
	dir := filepath.Join("..", "..", "docs", "reference")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		log.Fatal(err)
	}
	pages := pipeline.References()
	schema, err := pipeline.JSONSchema()
	if err != nil {
		log.Fatal(err)
	}
	pages["pipeline.schema.json"] = string(schema) + "\n"
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
