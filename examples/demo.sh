#!/bin/sh
# Runs examples/web-errors.yaml and shows what came of it.
set -eu
cd "$(dirname "$0")/.."

echo '$ rsetl run --once examples/web-errors.yaml'
./bin/rsetl run --once examples/web-errors.yaml
echo
echo 'Above is the ledger: what became of each line. The table "errors" in web-errors.db begins with:'
go run ./internal/showdb web-errors.db 'SELECT "@timestamp", host, status, bytes, url FROM errors LIMIT 8'
echo
echo 'and counts, by minute and status:'
go run ./internal/showdb web-errors.db "SELECT substr(\"@timestamp\", 1, 16) AS minute, status, count(*) AS hits FROM errors GROUP BY 1, 2 ORDER BY hits DESC LIMIT 5"
echo
echo 'The lines that could not be parsed are in web-errors.dead.ndjson, each with its reason; the first:'
head -n 1 web-errors.dead.ndjson
