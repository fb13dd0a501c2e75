// Package v1 holds the delivery API, group eno.azure.io.
//
//	Synthesizer ◀── Composition ──▶ ResourceSlice ──▶ objects in a cluster
//	                    ▲
//	                Symphony                         several compositions as one
//
// A Synthesizer is a program that makes manifests from inputs. A Composition is
// one use of it: which inputs, and what came of it. ResourceSlices hold the
// manifests of one synthesis, and what has become of each. A Symphony makes a
// Composition for each of several synthesizers, with inputs in common.
//
// Manifests written for Eno apply unchanged. What Arbor adds is in the status of
// a Composition (conditions, history, ownership) and in annotations of its own.
//
// +kubebuilder:object:generate=true
// +groupName=eno.azure.io
package v1
