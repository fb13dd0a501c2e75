# The images of `make image`, for those who build with Docker:
#
#   docker buildx build --platform=linux/amd64,linux/arm64 --build-arg=RELEASE=$(git describe --tags --always) .
#
# That is the manager's; --target=scheduler is the scheduler's, and
# --target=synthesizer-yaml, -kustomize or -helm those of the stock synthesizers.
# `make image` needs no Docker. A test compares the two: what is said here is said in
# tools/release/product first.
#
# The compiler comes from GO_IMAGE, of which nothing is left in the images. A tag can be moved:
# pin it with --build-arg=GO_IMAGE=golang:1.26.8@sha256:…, with the digest that you have checked.
ARG GO_IMAGE=golang:1.26.8
FROM --platform=$BUILDPLATFORM $GO_IMAGE AS build
ARG TARGETOS TARGETARCH RELEASE=development
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN mkdir /image && cp LICENSE /image/

# The compiler runs where the build runs, for whatever platform is asked for.
FROM build AS build-scheduler
# Kubernetes reports the version that the linker gives it.
RUN for name in arbor-scheduler ; do \
        CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
            go build -trimpath -buildvcs=false -ldflags "-s -w -X main.release=$RELEASE \
                -X k8s.io/component-base/version.gitVersion=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)" \
            -o /image/ ./cmd/$name || exit 1; \
    done && \
    go run ./tools/release -out /image/THIRD_PARTY_NOTICES notices arbor-scheduler

FROM build AS build-manager
RUN for name in arbor-manager arbor-executor ; do \
        CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
            go build -trimpath -buildvcs=false -ldflags "-s -w -X main.release=$RELEASE" -o /image/ ./cmd/$name || exit 1; \
    done && \
    go run ./tools/release -out /image/THIRD_PARTY_NOTICES notices arbor-manager

FROM build AS build-synthesizer-yaml
RUN for name in arbor-synthesizer-yaml ; do \
        CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
            go build -trimpath -buildvcs=false -ldflags "-s -w -X main.release=$RELEASE" -o /image/ ./cmd/$name || exit 1; \
    done && \
    go run ./tools/release -out /image/THIRD_PARTY_NOTICES notices arbor-synthesizer-yaml

FROM build AS build-synthesizer-kustomize
RUN for name in arbor-synthesizer-kustomize ; do \
        CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
            go build -trimpath -buildvcs=false -ldflags "-s -w -X main.release=$RELEASE" -o /image/ ./cmd/$name || exit 1; \
    done && \
    go run ./tools/release -out /image/THIRD_PARTY_NOTICES notices arbor-synthesizer-kustomize

# A module of its own: Helm needs another version of Kubernetes.
FROM build AS build-synthesizer-helm
RUN for name in arbor-synthesizer-helm ; do \
        CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
            go build -C synthesizers/helm -trimpath -buildvcs=false -ldflags "-s -w -X main.release=$RELEASE" -o /image/$name . || exit 1; \
    done && \
    go run ./tools/release -out /image/THIRD_PARTY_NOTICES notices arbor-synthesizer-helm

# Nothing but the programs: no shell, no C library, no certificates of public
# authorities. They talk to the API server only, whose authority they are told.
FROM scratch AS scheduler
ARG RELEASE=development
COPY --from=build-scheduler /image/ /
LABEL org.opencontainers.image.title="arbor-scheduler" \
      org.opencontainers.image.description="kube-scheduler that places the pods of a PodGroup together or not at all" \
      org.opencontainers.image.source="https://github.com/arbor-control/arbor" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$RELEASE"
USER 65532:65532
ENTRYPOINT ["/arbor-scheduler"]

FROM scratch AS synthesizer-yaml
ARG RELEASE=development
COPY --from=build-synthesizer-yaml /image/ /
LABEL org.opencontainers.image.title="arbor-synthesizer-yaml" \
      org.opencontainers.image.description="Synthesizer that delivers plain manifests" \
      org.opencontainers.image.source="https://github.com/arbor-control/arbor" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$RELEASE"
USER 65532:65532
ENTRYPOINT ["/arbor-synthesizer-yaml"]

FROM scratch AS synthesizer-kustomize
ARG RELEASE=development
COPY --from=build-synthesizer-kustomize /image/ /
LABEL org.opencontainers.image.title="arbor-synthesizer-kustomize" \
      org.opencontainers.image.description="Synthesizer that delivers a kustomization" \
      org.opencontainers.image.source="https://github.com/arbor-control/arbor" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$RELEASE"
USER 65532:65532
ENTRYPOINT ["/arbor-synthesizer-kustomize"]

FROM scratch AS synthesizer-helm
ARG RELEASE=development
COPY --from=build-synthesizer-helm /image/ /
LABEL org.opencontainers.image.title="arbor-synthesizer-helm" \
      org.opencontainers.image.description="Synthesizer that delivers a Helm chart" \
      org.opencontainers.image.source="https://github.com/arbor-control/arbor" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$RELEASE"
USER 65532:65532
ENTRYPOINT ["/arbor-synthesizer-helm"]

# The last one is what is built if nobody says which.
FROM scratch AS manager
ARG RELEASE=development
COPY --from=build-manager /image/ /
LABEL org.opencontainers.image.title="arbor-manager" \
      org.opencontainers.image.description="Arbor's controllers and admission webhooks" \
      org.opencontainers.image.source="https://github.com/arbor-control/arbor" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$RELEASE"
USER 65532:65532
ENTRYPOINT ["/arbor-manager"]
