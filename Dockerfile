# The image of `make image`, for those who build with Docker:
#
#   docker buildx build --platform=linux/amd64,linux/arm64 --build-arg=RELEASE=$(git describe --tags --always) .
#
# `make image` needs no Docker. A test compares the two: what is said here is said
# in tools/release/product first.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH RELEASE=development
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The compiler runs where the build runs, for whatever platform is asked for.
RUN mkdir /image && \
    for name in arbor-manager arbor-executor ; do \
        CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
            go build -trimpath -buildvcs=false -ldflags "-s -w -X main.release=$RELEASE" -o /image/ ./cmd/$name || exit 1; \
    done && \
    go run ./tools/release -out /image/THIRD_PARTY_NOTICES notices && \
    cp LICENSE /image/

# Nothing but the programs: no shell, no C library, no certificates of public
# authorities. The manager talks to the API server only, whose authority it is told.
FROM scratch
ARG RELEASE=development
COPY --from=build /image/ /
LABEL org.opencontainers.image.title="arbor-manager" \
      org.opencontainers.image.description="Arbor's controllers and admission webhooks" \
      org.opencontainers.image.source="https://github.com/arbor-control/arbor" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$RELEASE"
USER 65532:65532
ENTRYPOINT ["/arbor-manager"]
