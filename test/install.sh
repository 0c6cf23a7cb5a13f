#!/bin/sh
# What the tests need beside Go: a C compiler for the race detector.
set -eu
if ! command -v cc >/dev/null 2>&1 && ! command -v gcc >/dev/null 2>&1; then
	echo 'install: a C compiler, for the race detector'
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null
	else
		echo 'install: please install gcc (the race detector needs it)' >&2
		exit 1
	fi
fi
go mod download
