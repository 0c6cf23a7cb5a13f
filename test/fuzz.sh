#!/bin/sh
# Runs every fuzz target for a time each: test/fuzz.sh 30s
set -eu
cd "$(dirname "$0")/.."
for pkg in $(go list ./...); do
	for f in $(go test "$pkg" -list '^Fuzz' 2>/dev/null | grep '^Fuzz' || true); do
		echo "== $pkg $f"
		go test "$pkg" -run '^$' -fuzz "^$f\$" -fuzztime "${1:-30s}" -fuzzminimizetime 10x
	done
done
