# The project's commands. `make demo` and `make test` are all a newcomer needs.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
export CGO_ENABLED = 0

# The real servers that tests use: `make test` starts those that don't run, and stops these after it.
# RSETL_SERVICES=required makes it fail where one can't be had, off skips their tests.
SERVICES ?= elasticsearch mysql rocketmq

# Tests that run RocketMQ's Go client beside rsetl: it has races of its own, so that they are left out under -race.
RACY = TestMixedGroup|TestSink$$|TestDelay

.PHONY: build demo test services services-down chaos bench fuzz generate lint clean

build: ## bin/rsetl, one static binary
	$(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/rsetl ./cmd/rsetl

demo: build ## the README's example: an access log into a table
	@./examples/demo.sh

test: ## everything but long runs and benchmarks; installs what is missing
	@./test/install.sh
	CGO_ENABLED=1 ./test/services/services with $(SERVICES) -- sh -c '$(GO) test -run "$(RACY)" ./test/rocketmq && $(GO) test -race -shuffle=on -timeout 20m ./...'

services: ## start the real servers, to keep them running between tests
	./test/services/services up $(SERVICES)

services-down: ## stop them and remove their data
	./test/services/services down $(SERVICES)

chaos: ## the crash tests, long
	$(GO) test ./test/chaos -count=1 -timeout 60m -v -args -kills 500
	./test/services/services with $(SERVICES) -- $(GO) test ./test/sinks -run Chaos -count=1 -timeout 60m -v -args -kills 64 -lines 10000 -restart -full
	./test/services/services with $(SERVICES) -- $(GO) test ./test/rocketmq -run Chaos -count=1 -timeout 60m -v -args -messages 2000000 -kills 20 -restarts 3

bench: ## speed and memory against hand-written loops and Benthos
	./bench/run.sh

FUZZTIME ?= 30s
fuzz: ## every fuzz target for FUZZTIME
	@./test/fuzz.sh $(FUZZTIME)

generate: ## docs/reference and the JSON Schema from the structs
	$(GO) generate ./...

lint: ## formatting, vet, static analysis, generated files
	@./test/lint.sh

clean:
	rm -rf bin web-errors.db web-errors.db-* *.dead.ndjson
