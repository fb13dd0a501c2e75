// Package kube has the helpers for talking to the API server: common names, retries, and CRDs.
package kube
