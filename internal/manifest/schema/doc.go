// Package schema validates objects against a CustomResourceDefinition without
// a cluster, in the steps in which an API server does it when an object is
// created with strict field validation:
//
//	metadata decodes ── unknown fields ── defaults ── metadata is valid
//	── OpenAPI schema ── list types ── x-kubernetes-validations
//
// The code behind each step is that of the API server. What this package adds
// is the order, words that name the field and the mending, and a result that
// is sorted, because the API server's is in map order.
package schema
