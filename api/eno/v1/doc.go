// Package v1 holds the delivery API, group eno.azure.io.
//
//	Synthesizer ◀── Composition ──▶ ResourceSlice ──▶ objects in a cluster
//	                    ▲
//	                Symphony                         several compositions as one
//
// A Synthesizer is a program that generates manifests from inputs. A Composition
// runs it with inputs and delivers the manifests. ResourceSlices hold the
// manifests of one synthesis and the state of each. A Symphony creates a
// Composition for each of several Synthesizers, with common inputs.
//
// Manifests written for Eno apply unchanged. Arbor adds fields to the status of a
// Composition (conditions, history, ownership), and annotations of its own.
//
// +kubebuilder:object:generate=true
// +groupName=eno.azure.io
package v1
