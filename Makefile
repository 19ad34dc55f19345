# `make check` is what CI runs after the README's test command.
# Needs Go, GNU make, bash and, for the race detector, a C compiler.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := check
.NOTPARALLEL:

# The modules of the workspace. examples/peers and examples/cluster are on their own.
PACKAGES := ./... ./purge/boltstore/... ./examples/...

# What `check` runs, in this order; it stops at the first that fails.
CHECKS := fmt vet oldest staticcheck tidy corpus deep attack mutations race test-386 cross-linux-s390x fuzz examples peers cluster

# A tool, not a dependency: it is in no go.mod.
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

# All of them. To leave one out, write all,-ST1000 and the reason here.
STATICCHECKS := all

# Seconds shared by all fuzz targets, each of which gets 4 at least.
FUZZTIME ?= 120

# How long `soak` runs each test, as a Go duration.
SOAK ?= 1h

# Systems for which `cross` compiles everything. s390x is big-endian.
CROSS := linux-s390x linux-arm64 windows-amd64 darwin-arm64

# What `bench` runs, and how often: benchstat wants 10.
BENCH ?= .
COUNT ?= 1

.PHONY: check
check:
	@for step in $(CHECKS); do .ci/step "$$step" $(MAKE) --no-print-directory "$$step"; done

.PHONY: lint
lint: fmt vet staticcheck tidy

.PHONY: fmt
fmt:
	@bad=$$(gofmt -s -l .); \
	if [[ -n $$bad ]]; then printf 'gofmt -s would change:\n%s\n' "$$bad" >&2; exit 1; fi

.PHONY: vet
vet:
	go vet $(PACKAGES)

# The oldest Go that the README names compiles everything. Its patch releases count.
OLDEST := $(shell sed -n 's/^go //p' go.work)

.PHONY: oldest
oldest:
	@grep -q 'with Go $(OLDEST:%.0=%) or later' README.md || { echo 'go.work has go $(OLDEST), README.md another' >&2; exit 1; }
	GOTOOLCHAIN='go$(OLDEST)' go vet $(PACKAGES)

.PHONY: staticcheck
staticcheck:
	$(STATICCHECK) -checks='$(STATICCHECKS)' $(PACKAGES)

# Each module stands alone, without the workspace.
.PHONY: tidy
tidy:
	@find . -name go.mod -not -path '*/testdata/*' -printf '%h\n' | sort | while read -r dir; do \
		echo "go mod tidy -diff ($$dir)"; \
		(cd "$$dir" && GOWORK=off go mod tidy -diff); \
	done

# What the library exports, against the last tag. A patch release may break nothing.
.PHONY: api
api:
	@.ci/api

# Known vulnerabilities, if their database can be had.
.PHONY: vuln
vuln:
	@.ci/vuln $(PACKAGES)

.PHONY: test
test:
	go test -shuffle=on -count=1 $(PACKAGES)

# What a fresh clone compares with, in little time: the corpus. The other packages compare with nothing.
.PHONY: corpus
corpus:
	@packages=$$(grep -rlE --include='*_test.go' 'internal/refdata|JOBLIFE_DATA' . | xargs -n 1 dirname | sort -u); \
	env -u JOBLIFE_DATA go test -short -count=1 $$packages

# The tests that have more depth than there is time for in `test`, and no others.
.PHONY: deep
deep:
	@reading=$$(.ci/reading JOBLIFE_DEEP); read -r tests packages <<<"$$reading"; \
	JOBLIFE_DEEP=1 go test -run "$$tests" -count=1 -timeout 20m $$packages

# Forty seconds of random histories, with fresh seeds.
.PHONY: attack
attack:
	@$(MAKE) --no-print-directory soak SOAK=40s

# Deliberate faults, each of which the harness has to find.
.PHONY: mutations
mutations:
	go test -tags joblife_mutations -run TestMutations -count=1 .

# Each condition, comparison and statement of the core, changed one after the other. It takes
# many hours, and goes on where it was stopped. MUTATE are flags, such as -own -sample 60.
CORE ?= idset jobstate jobstate/fsd jobstate/jobid eventlog rset rset/alloc rset/pool rset/sched perilog perilog/exec loop .
MUTATE ?=
.PHONY: mutants
mutants:
	@GOCACHE=$$(mktemp -d); export GOCACHE; trap 'rm -rf "$$GOCACHE"' EXIT; ulimit -v 8000000; \
	go run ./internal/mutants $(MUTATE) $(CORE)

# Random histories for SOAK, all tests at once. JOBLIFE_SEED repeats one that failed.
.PHONY: soak
soak:
	@reading=$$(.ci/reading JOBLIFE_SOAK); read -r _ packages <<<"$$reading"; \
	go test -list 'Soak|Attack' $$packages | grep '^Test'; \
	JOBLIFE_SOAK='$(SOAK)' go test -p 16 -run 'Soak|Attack' -count=1 -timeout 0 -v $$packages

# Where there is more than one goroutine. Some tests wait for processes: four packages at once.
.PHONY: race
race:
	@packages=$$(.ci/concurrent); \
	CGO_ENABLED=1 go test -race -p 4 -shuffle=on -count=1 $$packages

# int has 32 bits here. Runs on amd64.
.PHONY: test-386
test-386:
	GOARCH=386 CGO_ENABLED=0 go test -p 4 -count=1 $(PACKAGES)

# Compiles tests too, and runs none of them.
.PHONY: cross
cross: $(CROSS:%=cross-%)

.PHONY: $(CROSS:%=cross-%)
$(CROSS:%=cross-%): cross-%:
	@system='$*'; echo "go vet for $$system"; \
	GOOS=$${system%-*} GOARCH=$${system#*-} CGO_ENABLED=0 go vet $(PACKAGES)

.PHONY: fuzz
fuzz:
	@.ci/fuzz '$(FUZZTIME)'

.PHONY: examples
examples:
	@.ci/examples

# Opens the pages of examples/simulate and examples/cluster in a headless browser, at two or three widths, in light and dark.
BROWSER ?= chromium

.PHONY: browser
browser:
	JOBLIFE_BROWSER='$(BROWSER)' go test -count=1 -run Browser -v ./examples/simulate
	cd examples/cluster && JOBLIFE_BROWSER='$(BROWSER)' go test -count=1 -run Browser -v .

# That all sides of the comparison with other libraries agree. To compare: go test -bench .
.PHONY: peers
peers:
	cd examples/peers && go vet . && $(STATICCHECK) -checks='$(STATICCHECKS)' . && go test -count=1 .

# A cluster whose processes are killed once; cluster-soak kills them for ROUNDS rounds, and
# kills servers, stops managers, cuts the network, and fills the log and a disk too, for as many
# rounds each. JOBS is how many jobs a round has (default: 20 to 60).
ROUNDS ?= 50
JOBS ?=
.PHONY: cluster cluster-soak
cluster:
	cd examples/cluster && go vet ./... && $(STATICCHECK) -checks='$(STATICCHECKS)' ./... && go test -short -count=1 ./...
cluster-soak:
	cd examples/cluster && CLUSTER_ROUNDS=$(ROUNDS) CLUSTER_JOBS=$(JOBS) go test -count=1 -timeout 24h -run Nothing -v .

# flux-core's own tests, with examples/manager in place of its job manager, or with
# examples/sched in place of its schedulers. FLUX_SRC is a built source tree of flux-core, and
# LIVE some of the tests (default: all that are listed). examples/manager/live/run says more.
LIVE ?=

.PHONY: live live-sched live-differ live-demo live-rate live-soak
live:
	@examples/manager/live/run manager $(LIVE)
live-sched:
	@examples/manager/live/run sched $(LIVE)
# Random requests, the same at both managers.
live-differ:
	@examples/manager/live/differ
# What partial release is worth with 64 brokers; jobs a second and CPU; and thousands of jobs while
# workers are killed, with our scheduler or flux-core's. FLUX_PREFIX is where flux-core is installed.
live-demo:
	@examples/manager/live/demo
live-rate:
	@examples/manager/live/rate
live-soak:
	@examples/manager/live/soak ours
	@examples/manager/live/soak stock

.PHONY: bench
bench:
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PACKAGES)

# What needs minutes and gigabytes, and so is not in CI.
.PHONY: bench-long
bench-long:
	JOBLIFE_LONG=1 go test -run '^$$' -bench Long -benchmem -timeout 60m $(PACKAGES)

.PHONY: cover
cover:
	go test -count=1 -coverprofile=coverage.out -coverpkg=./... ./...
	go tool cover -func=coverage.out
