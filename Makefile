# Everything a person needs: up, build, test, lint, generate, bench, chaos, image, release.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

RELEASE ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
# Kubernetes reports the version that the linker gives it; it must be the one of
# the linked module, or clients see a wrong server version.
KUBERNETES = $(shell go list -m -f '{{.Version}}' k8s.io/kubernetes)
STAGED = k8s.io/component-base/version
LDFLAGS = -s -w -X main.release=$(RELEASE) \
	-X $(STAGED).gitVersion=$(KUBERNETES) \
	-X $(STAGED).gitMajor=$(word 1,$(subst ., ,$(KUBERNETES:v%=%))) \
	-X $(STAGED).gitMinor=$(word 2,$(subst ., ,$(KUBERNETES:v%=%))) \
	-X $(STAGED).gitTreeState=clean

# No program needs a C library, so none gets one: they run anywhere. The linters
# read the same build, or Kubernetes would be compiled twice. Only the race
# detector needs C.
STATIC = CGO_ENABLED=0

# Kubernetes itself is not compiled a second time for the race detector: what is
# ours in those two packages has no state to race for. test/node runs by itself, since it
# measures what a busy machine would disturb. tools/release compresses images, for which the race
# detector takes six times as long.
TESTED = $(shell go list ./... | grep -v -e /cmd/arbor$$ -e /internal/controlplane/component$$ -e /test/node$$ -e /tools/release)
FUZZTIME ?= 30s
# Tests on a control plane wait a third of their time, so one package more than there are cores
# runs at a time.
PACKAGES ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

.PHONY: up
up: build ## Start Kubernetes with Arbor on it, in the foreground (ARGS="--nodes=10" …)
	@exec bin/arbor up $(ARGS)

.PHONY: build
build: ## Build bin/arbor, bin/arbor-manager, bin/arbor-scheduler, bin/arbor-executor, synthesizers and the kubectl plugin
	@[ -e bin/arbor ] || echo "Building Kubernetes $(KUBERNETES) from its Go modules: about ten minutes the first time, on two cores; seconds after that."
	@[ ! -L bin/kubectl-arbor ] || rm bin/kubectl-arbor # of an earlier build, which would write bin/arbor through it
	@$(STATIC) go build -ldflags "$(LDFLAGS)" -o bin/ ./cmd/arbor ./cmd/kubectl-arbor ./cmd/arbor-manager ./cmd/arbor-scheduler ./cmd/arbor-executor ./cmd/arbor-synthesizer-yaml ./cmd/arbor-synthesizer-kustomize
	@printf '#!/bin/sh\n# kubectl calls it to complete "kubectl arbor".\nexec kubectl-arbor __complete "$$@"\n' >bin/kubectl_complete-arbor && chmod +x bin/kubectl_complete-arbor
	@ls -l bin/arbor bin/kubectl-arbor bin/arbor-manager bin/arbor-scheduler bin/arbor-executor | awk '{printf "%-20s %4d MB\n", $$9, $$5 / 1000000}'

# Helm needs another version of Kubernetes than Arbor, so what renders charts is a
# module of its own: docs/tasks/stock-synthesizers.md.
.PHONY: synthesizers
synthesizers: ## Build bin/arbor-synthesizer-helm, which renders Helm charts; make build builds the other two
	@$(STATIC) go build -C synthesizers/helm -ldflags "-s -w -X main.release=$(RELEASE)" -o ../../bin/arbor-synthesizer-helm .

.PHONY: test
test: setup build synthesizers verify lint test-programs ## Run all tests, on a real control plane where one is needed
	@rm -rf bin/cover && mkdir -p bin/cover/processes
	@ARBOR_MANAGER=$(CURDIR)/bin/test/arbor-manager ARBOR_SCHEDULER=$(CURDIR)/bin/test/arbor-scheduler ARBOR_COVERDIR=$(CURDIR)/bin/cover/processes \
		go test -json $(RACE) -p=$(PACKAGES) -timeout=30m -coverprofile=bin/cover/unit.out $(TESTED) | bin/test/testreport
	@go test -C synthesizers/helm ./...
	@$(STATIC) go test ./tools/release/...
	@$(MAKE) -s node-run
	@test/coverage.sh bin/cover

# The programs that make test starts: with the race detector and coverage, and the one that
# prints the results.
.PHONY: test-programs
test-programs:
	@echo "Building arbor-manager and arbor-scheduler with the race detector and coverage"
	@go build $(RACE) -cover -coverpkg=./... -ldflags "$(LDFLAGS)" -o bin/test/ ./cmd/arbor-manager ./cmd/arbor-scheduler
	@$(STATIC) go build -o bin/test/ ./tools/testreport

# Everything that make test compiles, so that CI can measure the time of tests
# without that of compiling.
.PHONY: prepare
prepare: setup build synthesizers test-programs
	@$(STATIC) go tool -modfile=tools/lint/go.mod -n golangci-lint >/dev/null
	@[ "$$(id -u)" != 0 ] || [ "$$(uname)" != Linux ] || $(MAKE) -s node-tools || echo "Not all programs of a node could be built: see above"

.PHONY: lint
lint: ## Run golangci-lint, as pinned in tools/lint
	@echo "Linting (the first time, golangci-lint is built from its modules: some minutes)"
	@$(STATIC) go tool -modfile=tools/lint/go.mod golangci-lint run ./...
	@lint=$$($(STATIC) go tool -modfile=tools/lint/go.mod -n golangci-lint) && cd synthesizers/helm && $(STATIC) $$lint run ./...

.PHONY: generate
generate: bin/helm ## Write all generated files; the list is in generate.go
	@$(STATIC) go generate ./generate.go

.PHONY: verify
verify: ## Fail when generated files are out of date
	@old=$$(mktemp -d) && trap "rm -rf $$old" EXIT && cp -r api charts deploy docs $$old && $(MAKE) -s generate && \
		{ { diff -r $$old/api api && diff -r $$old/charts charts && diff -r $$old/deploy deploy && diff -r $$old/docs docs; } || { echo "Generated files were out of date. They are written now: look at them and commit them."; exit 1; }; }

.PHONY: bench
bench: build ## Measure, and compare with the budgets in bench/budgets.yaml
	@go run ./bench $(ARGS)

# Faults under load: docs/safety/faults.md. make test has the short form, one round without a soak,
# restores a backup in fewer orders and allocates fewer blocks.
ROUNDS ?= 3
SOAK ?= 30m
.PHONY: chaos
chaos: build ## Kill, pause and cut off everything under load, then soak (ROUNDS=3 SOAK=30m)
	@$(STATIC) go test -count=1 -v -timeout=1h -run '^(TestRestoredWithNewUIDs|TestTwoManagers)$$' ./test/subnets -args -orders=30 -claims=2000
	@$(STATIC) go test -count=1 -v -timeout=3h ./test/chaos -args -rounds=$(ROUNDS) -soak=$(SOAK) $(ARGS)

# The CRDs and the chart of the last release, from which make test upgrades.
.PHONY: baseline
baseline: bin/helm ## After a release: store its CRDs and its chart, from which make test upgrades
	@cp api/crds/*.yaml test/upgrade/released/
	@mkdir -p test/upgrade/released/chart
	@bin/helm template arbor charts/arbor --namespace arbor-system --values test/upgrade/values.yaml >test/upgrade/released/chart/arbor.yaml

# The same tests with the manager of a commit too, so that the true previous program writes the
# data, and answers the requests.
FROM ?= HEAD~1
BUILD_FROM = dir=$$(mktemp -d) && trap "rm -rf $$dir" EXIT && mkdir $$dir/source && git archive $(FROM) | tar -x -C $$dir/source && \
	echo "Building arbor-manager of $$(git log -1 --format='%h (%s)' $(FROM))" && \
	(cd $$dir/source && $(STATIC) go build -o $$dir/arbor-manager ./cmd/arbor-manager) && \
	bin/helm template arbor $$dir/source/charts/arbor --namespace arbor-system --values $$dir/source/test/upgrade/values.yaml >$$dir/arbor.yaml && \
	export ARBOR_FROM=$$dir ARBOR_FROM_TITLE=$$(git rev-parse --short $(FROM))
.PHONY: upgrade-check
upgrade-check: build bin/helm ## Upgrade chart and manager of a commit, with data in place, and take it back (FROM=HEAD~1)
	@$(BUILD_FROM) && $(STATIC) go test -count=1 -v -run '^TestUpgrade$$' ./test/upgrade
.PHONY: node-upgrade
node-upgrade: build setup node-tools node-images ## Upgrade chart and manager of a commit on a real node while requests are admitted (FROM=HEAD~1)
	@$(BUILD_FROM) && cd test/node && $(STATIC) go test -count=1 -v -run '^Test(Uninstall|Upgrade)$$'

# The first part of the names that the images have once they are loaded, and for
# which platforms they are: REGISTRY=registry.example.com PLATFORMS=linux/amd64
REGISTRY ?= localhost
PLATFORMS ?=
# The same commit is the same image and the same release, so its time is their time.
EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || echo 0))
PACKAGE = SOURCE_DATE_EPOCH=$(EPOCH) go run ./tools/release -ldflags "$(LDFLAGS)" \
	-version "$(RELEASE)" -revision "$(shell git rev-parse HEAD 2>/dev/null)" -registry "$(REGISTRY)"

.PHONY: image
image: ## Build the images of manager, scheduler and stock synthesizers, bin/*.oci.tar, for amd64 and arm64, without Docker
	@echo "Building the programs of all images for every platform: some minutes the first time"
	@$(PACKAGE) -platforms "$(PLATFORMS)" -out bin images

# COSIGN_KEY is the file with the private key that the checksums are signed with, and BASE_URL is
# where the files will be downloaded from, for the krew manifest of the kubectl plugin.
.PHONY: release
release: ## Build all that is released into dist: programs, images, SBOMs, licenses, checksums (COSIGN_KEY=FILE signs them, BASE_URL=URL adds a krew manifest)
	@echo "Building Kubernetes $(KUBERNETES) for every platform: long the first time"
	@rm -rf dist && mkdir dist
	@$(PACKAGE) $(if $(COSIGN_KEY),-sign-key "$(COSIGN_KEY)") $(if $(BASE_URL),-base-url "$(BASE_URL)") -out dist release

# govulncheck reads a database in the internet, so it does not run in make test: its result can
# change from one day to the next.
.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities that Arbor's code reaches (needs the internet)
	@go tool -modfile=tools/vulncheck/go.mod govulncheck -db "$${GOVULNDB:-https://vuln.go.dev}" ./cmd/... || { code=$$?; \
		[ $$code = 3 ] || echo "govulncheck failed. It needs the database of vuln.go.dev: run it where that can be reached, or name a copy with GOVULNDB=file:///path/to/copy." >&2; \
		exit $$code; }

.PHONY: fuzz
fuzz: ## Fuzz everything that parses, FUZZTIME (30s) each
	@grep -rl --include='*_test.go' 'func Fuzz' api engine internal synthesizers | while read -r file; do \
		sed -n 's/^func \(Fuzz[A-Za-z]*\).*/\1/p' $$file | while read -r target; do \
			echo "$$target in $$(dirname $$file)"; \
			go test -C $$(dirname $$file) . -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x; \
		done; \
	done

# Helm is a tool with a module of its own, as pinned in tools/helm, so that
# nothing else depends on what it needs.
bin/helm: tools/helm/go.mod tools/helm/go.sum
	@echo "Building Helm from its modules (the first time some minutes)"
	@$(STATIC) go build -modfile=tools/helm/go.mod -ldflags "-s -w" -o $@ helm.sh/helm/v4/cmd/helm

# Prometheus' own tool tests the rules of monitoring, and Prometheus itself asks
# what they and the dashboards ask. Where one of them is missing, it is taken out
# of Debian's package, which needs no root. To install the package would start a
# server, now and at every boot.
PROMETHEUS = $(foreach tool,prometheus promtool,$(shell command -v $(tool) || echo bin/$(tool)))
bin/prometheus bin/promtool &:
	@echo "Taking prometheus and promtool out of Debian's package prometheus"
	@dir=$$(mktemp -d) && trap "rm -rf $$dir" EXIT && cd $$dir && get="apt-get download -qq -o APT::Sandbox::User=root prometheus" && \
		{ $$get 2>/dev/null || { apt-get update -qq && $$get; }; } && \
		dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/prometheus ./usr/bin/promtool && \
		install -D -t $(CURDIR)/bin usr/bin/prometheus usr/bin/promtool || \
		{ echo "There is no prometheus or no promtool, which prove the rules and dashboards of monitoring: install Prometheus, or put both into bin."; exit 1; }

# The programs of a real node, for test/node. The kubelet has a module of its own, with the
# versions of go.mod and its build flags, so that it shares the build cache with bin/arbor;
# containerd needs other versions of the same modules.
NODE_TOOLS = $(addprefix bin/node/,kubelet containerd runc)
bin/node/kubelet: tools/node/kubelet/go.mod tools/node/kubelet/go.sum
	@echo "Building kubelet from its modules (the first time some minutes)"
	@$(STATIC) go build -C tools/node/kubelet -ldflags "$(LDFLAGS)" -o $(CURDIR)/$@ k8s.io/kubernetes/cmd/kubelet

RUNTIME = tools/node/runtime
bin/node/containerd: $(RUNTIME)/go.mod $(RUNTIME)/go.sum
	@echo "Building containerd and the CNI plugins from their modules (the first time some minutes)"
	@mkdir -p bin/node/cni
	@$(STATIC) go build -C $(RUNTIME) -ldflags "-s -w" -o $(CURDIR)/bin/node/cni/ $(addprefix github.com/containernetworking/plugins/plugins/,main/bridge main/loopback ipam/host-local)
	@$(STATIC) go build -C $(RUNTIME) -ldflags "-s -w" -o $(CURDIR)/bin/node/ $(addprefix github.com/containerd/containerd/v2/cmd/,containerd containerd-shim-runc-v2 ctr)

# runc is the one program that needs C, for libseccomp.
bin/node/runc: $(RUNTIME)/go.mod $(RUNTIME)/go.sum
	@if ! command -v gcc >/dev/null || ! [ -e /usr/include/seccomp.h ]; then echo "runc needs gcc and libseccomp (Debian: apt-get install gcc libseccomp-dev)"; exit 0; fi; \
		echo "Building runc from its modules"; \
		CGO_ENABLED=1 go build -C $(RUNTIME) -tags "seccomp netgo osusergo" -ldflags "-s -w -extldflags -static" -o $(CURDIR)/$@ github.com/opencontainers/runc || \
		{ rm -f $@; echo "runc cannot be built: it needs libseccomp.a and pkg-config (Debian: apt-get install libseccomp-dev pkg-config)"; }

# The images of the node have the programs of make build, since make image would compile
# Kubernetes once more, for reproducible files. They are packed again only if the
# checksum of a program has changed: its date changes with every build.
NODE_PROGRAMS = bin/arbor-manager bin/arbor-executor bin/arbor-scheduler
.PHONY: node-images
node-images: build
	@mkdir -p bin/node/images && sum=$$(sha256sum $(NODE_PROGRAMS)) && [ "$$sum" = "$$(cat bin/node/images/programs 2>/dev/null)" ] || { \
		SOURCE_DATE_EPOCH=$(EPOCH) go run ./tools/release -version node -registry localhost -programs bin \
			-platforms linux/$$(go env GOARCH) -out bin/node/images images arbor-manager arbor-scheduler && \
		echo "$$sum" >bin/node/images/programs; }

.PHONY: node-tools
node-tools: $(NODE_TOOLS) ## Build bin/node: kubelet, containerd, runc and CNI plugins, for make node-test

# How many times the managers are replaced while requests are admitted: fewer in make test.
RESTARTS ?= 3
.PHONY: node-test
node-test: RESTARTS = 10
node-test: build setup node-run ## Test the chart and the images on a real kubelet, containerd and runc, in namespaces (Linux, root)

# In the folder of the package, so that the go command shows why tests are skipped.
.PHONY: node-run
node-run:
	@[ "$$(id -u)" != 0 ] || [ "$$(uname)" != Linux ] || $(MAKE) -s node-tools node-images || echo "Not all programs of a node could be built: see above"
	@cd test/node && $(STATIC) go test -count=1 -timeout=20m -parallel=16 -args -restarts=$(RESTARTS)

# The race detector needs a C compiler. It is installed for root; other users get a message.
RACE = $(shell command -v gcc >/dev/null && echo -race)
.PHONY: setup
setup: $(PROMETHEUS) bin/helm ## Get what the tests need: Prometheus, Helm, a C compiler, libseccomp, pkg-config and iproute2
	@command -v gcc >/dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing a C compiler for the race detector"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gcc libc6-dev >/dev/null; \
	else \
		echo "There is no C compiler and this is not root: the tests run without the race detector. (Debian: apt-get install gcc libc6-dev)"; \
	fi
	@[ "$$(uname)" != Linux ] || { [ -e /usr/include/seccomp.h ] && command -v ip >/dev/null && command -v pkg-config >/dev/null; } || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing libseccomp, pkg-config and iproute2 for the tests on a real node"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq libseccomp-dev pkg-config iproute2 >/dev/null; } || \
			echo "They could not be installed: the tests on a real node will say what is missing."; \
	fi
