// Command benthos is Benthos with what the comparison needs: `benthos -c FILE`.
package main

import (
	"context"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
)

func main() { service.RunCLI(context.Background()) }
