#!/bin/sh
# Benchmarks: the Go ones (jobs and their loops in one process), then whole programs against the loops and Benthos.
# Arguments go to cmd/ratios, such as -runs 3 -size 100MB -peers=false.
set -eu
cd "$(dirname "$0")/.."
GOMAXPROCS=1 go test ./bench -run '^$' -bench Job -count "${COUNT:-3}"
go test ./bench -run '^$' -bench Workers -count "${COUNT:-3}"
go run ./bench/cmd/ratios "$@"

echo
echo "== filters against expr-lang/expr and cel-go, on the same records"
(cd bench/peers && GOMAXPROCS=1 go test ./filters -run Same -bench . -count "${COUNT:-6}")

echo
echo "== windows"
GOMAXPROCS=1 go test ./windows -run '^$' -bench . -count "${COUNT:-3}"
if command -v mvn > /dev/null && command -v java > /dev/null; then
	go run ./bench/cmd/flink
else
	echo "no Java or Maven: not compared with Flink"
fi
