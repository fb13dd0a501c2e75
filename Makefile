# Everything a person needs: up, build, test, lint, generate, bench.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

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

.PHONY: up
up: build ## Start Kubernetes with Arbor on it, in the foreground (ARGS for `arbor up`)
	exec bin/arbor up $(ARGS)

.PHONY: build
build: ## Build bin/arbor, bin/arbor-manager and the kubectl plugin
	@[ -e bin/arbor ] || echo "Building Kubernetes $(KUBERNETES) from its Go modules. The first time this takes about ten minutes (two cores), later a few seconds."
	@go build -ldflags "$(LDFLAGS)" -o bin/ ./cmd/arbor ./cmd/arbor-manager
	@ln -sf arbor bin/kubectl-arbor
	@ls -l bin/arbor bin/arbor-manager | awk '{printf "%-20s %4d MB\n", $$9, $$5 / 1000000}'
