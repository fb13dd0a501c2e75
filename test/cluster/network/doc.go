// Package network makes requests to an API server late, lost or rejected, for tests: a [Proxy] changes
// what happens to requests, and a [Relay] cuts connections.
package network
