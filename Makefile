# Everything a person needs: up, build, test, lint, generate, bench.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

RELEASE ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
# Kubernetes reports the version that the linker gives it; it must be the one of
# the module that is linked, or clients cannot tell what they talk to.
KUBERNETES = $(shell go list -m -f '{{.Version}}' k8s.io/kubernetes)
STAGED = k8s.io/component-base/version
LDFLAGS = -s -w -X main.release=$(RELEASE) \
	-X $(STAGED).gitVersion=$(KUBERNETES) \
	-X $(STAGED).gitMajor=$(word 1,$(subst ., ,$(KUBERNETES:v%=%))) \
	-X $(STAGED).gitMinor=$(word 2,$(subst ., ,$(KUBERNETES:v%=%))) \
	-X $(STAGED).gitTreeState=clean

# Kubernetes itself is not compiled a second time for the race detector: what is
# ours in those two packages has no state to race for.
TESTED = $(shell go list ./... | grep -v -e /cmd/arbor$$ -e /internal/controlplane/component$$)
FUZZTIME ?= 30s

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

.PHONY: up
up: build ## Start Kubernetes with Arbor on it, in the foreground (ARGS="--nodes=10" …)
	@exec bin/arbor up $(ARGS)

.PHONY: build
build: ## Build bin/arbor, bin/arbor-manager and the kubectl plugin
	@[ -e bin/arbor ] || echo "Building Kubernetes $(KUBERNETES) from its Go modules: about ten minutes the first time, on two cores; seconds after that."
	@go build -ldflags "$(LDFLAGS)" -o bin/ ./cmd/arbor ./cmd/arbor-manager
	@ln -sf arbor bin/kubectl-arbor
	@ls -l bin/arbor bin/arbor-manager | awk '{printf "%-20s %4d MB\n", $$9, $$5 / 1000000}'

.PHONY: test
test: setup build verify lint ## Run all tests, on a real control plane where one is needed
	@echo "Building arbor-manager with the race detector and coverage"
	@go build $(RACE) -cover -coverpkg=./... -o bin/test/arbor-manager ./cmd/arbor-manager
	@rm -rf bin/cover && mkdir -p bin/cover/processes
	@ARBOR_MANAGER=$(CURDIR)/bin/test/arbor-manager ARBOR_COVERDIR=$(CURDIR)/bin/cover/processes \
		go test $(RACE) -timeout=20m -coverprofile=bin/cover/unit.out $(TESTED)
	@test/coverage.sh bin/cover

.PHONY: lint
lint: ## Run golangci-lint, as pinned in tools/lint
	@echo "Linting (the first time, golangci-lint is built from its modules: some minutes)"
	@go tool -modfile=tools/lint/go.mod golangci-lint run ./...

.PHONY: generate
generate: bin/helm ## Write all generated files anew; the list is in generate.go
	@go generate ./generate.go

.PHONY: verify
verify: ## Fail when generated files are out of date
	@old=$$(mktemp -d) && trap "rm -rf $$old" EXIT && cp -r api charts deploy $$old && $(MAKE) -s generate && \
		{ { diff -r $$old/api api && diff -r $$old/charts charts && diff -r $$old/deploy deploy; } || { echo "Generated files were out of date. They are written now: look at them and commit them."; exit 1; }; }

.PHONY: bench
bench: build ## Measure, and compare with the budgets in bench/budgets.yaml
	@go run ./bench $(ARGS)

.PHONY: fuzz
fuzz: ## Fuzz everything that parses, FUZZTIME (30s) each
	@grep -rl --include='*_test.go' 'func Fuzz' engine internal | while read -r file; do \
		sed -n 's/^func \(Fuzz[A-Za-z]*\).*/\1/p' $$file | while read -r target; do \
			echo "$$target in $$(dirname $$file)"; \
			go test ./$$(dirname $$file) -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x; \
		done; \
	done

# Helm is a tool with a module of its own, as pinned in tools/helm, so that
# nothing else depends on what it needs.
bin/helm: tools/helm/go.mod tools/helm/go.sum
	@echo "Building Helm from its modules (the first time some minutes)"
	@go build -modfile=tools/helm/go.mod -trimpath -ldflags "-s -w" -o $@ helm.sh/helm/v4/cmd/helm

# Prometheus' own tool tests the rules of monitoring. Where there is none, this
# one file is taken out of Debian's package, which needs no root. To install the
# package would start a server, now and at every boot.
PROMTOOL = $(shell command -v promtool || echo bin/promtool)
bin/promtool:
	@echo "Taking promtool out of Debian's package prometheus"
	@dir=$$(mktemp -d) && trap "rm -rf $$dir" EXIT && cd $$dir && get="apt-get download -qq -o APT::Sandbox::User=root prometheus" && \
		{ $$get 2>/dev/null || { apt-get update -qq && $$get; }; } && \
		dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool >promtool && \
		install -D promtool $(CURDIR)/$@ || \
		{ echo "There is no promtool, which tests the rules of monitoring: install Prometheus, or put promtool into bin."; exit 1; }

# The race detector needs a C compiler. Root gets one; others are told.
RACE = $(shell command -v gcc >/dev/null && echo -race)
.PHONY: setup
setup: $(PROMTOOL) bin/helm ## Get what the tests need: promtool, Helm, and a C compiler
	@command -v gcc >/dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing a C compiler for the race detector"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gcc libc6-dev >/dev/null; \
	else \
		echo "There is no C compiler and this is not root: the tests run without the race detector. (Debian: apt-get install gcc libc6-dev)"; \
	fi
