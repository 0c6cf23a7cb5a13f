#!/bin/sh
# Formatting, vet, static analysis, and generated files that are up to date.
set -eu
cd "$(dirname "$0")/.."
out=$(gofmt -l $(git ls-files '*.go'))
if [ -n "$out" ]; then
	echo "not gofmt-ed: $out" >&2
	exit 1
fi
go vet ./...
go tool staticcheck ./...
go generate ./...
go mod tidy -diff
if ! git diff --quiet -- docs/reference; then
	echo 'generated files are stale: run make generate and commit' >&2
	git --no-pager diff --stat -- docs/reference >&2
	exit 1
fi
if [ -n "$(git status --porcelain -- docs/reference)" ]; then
	echo 'generated files are not committed: docs/reference' >&2
	exit 1
fi
