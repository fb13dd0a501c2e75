// Package kube is the one toolbox for talking to the API server: names that
// everything agrees on, retries, and the custom resource definitions.
package kube
