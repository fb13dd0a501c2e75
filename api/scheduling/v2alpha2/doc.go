// Package v2alpha2 holds the PodGroup API, group scheduling.run.ai.
//
// A PodGroup is a gang: pods that start together or not at all. Its subgroups
// form a tree by naming their parents. The schema is a superset of the one
// that KAI scheduler v0.17 serves, with the fields that older releases had, so
// that manifests written for any of them keep every field: what a schema
// lacks, the API server drops without a word.
//
// The types carry no pattern for subgroup names on purpose. The rule (lower
// case, one parent that exists, no cycle) is enforced by admission, whose
// words say what to change; a pattern would answer first, with a regular
// expression.
//
// +kubebuilder:object:generate=true
// +groupName=scheduling.run.ai
package v2alpha2
