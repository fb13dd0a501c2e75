package kube

const (
	// FieldManager owns the fields that Arbor applies.
	FieldManager = "arbor"
	// ManagedByLabel marks the objects that Arbor may change or replace.
	ManagedByLabel = "app.kubernetes.io/managed-by"
)
