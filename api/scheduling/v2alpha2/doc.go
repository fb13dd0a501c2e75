// Package v2alpha2 holds the PodGroup API, group scheduling.run.ai.
//
// A PodGroup is a gang: pods that start together or not at all. Its subgroups
// form a tree by naming their parents. The schema is a superset of the one
// that KAI scheduler v0.17 serves, with the fields that older releases had, so
// that manifests written for any of them keep every field: the API server
// silently drops fields that a schema lacks.
//
// The types have no pattern for subgroup names on purpose. The rule (lower
// case, one parent that exists, no cycle) is enforced by admission, whose
// message explains what to change. A pattern would be checked first, and its
// message would be a regular expression.
//
// +kubebuilder:object:generate=true
// +groupName=scheduling.run.ai
package v2alpha2
