// Package schema validates objects against a CustomResourceDefinition without
// a cluster, in the steps in which an API server does it when an object is
// created with strict field validation:
//
//	metadata decodes ── unknown fields ── defaults ── metadata is valid
//	── OpenAPI schema ── list types ── x-kubernetes-validations
//
// The code behind each step is that of the API server. This package adds the order, messages that
// name the field and the fix, and a sorted result, because that of the API server is in map order.
package schema
