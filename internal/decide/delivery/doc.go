// Package delivery decides how the manifests of a synthesis are delivered.
//
//	r, err := NewReader().Read(manifest, composition.Annotations)   reads a manifest and its settings
//	r, states, err := r.Override(live, composition)                 applies its overrides
//	s := NewSchedule(resources, deleting)                           orders the resources
//	a := Decide(r, Situation{…})                                    returns the action for one of them
//	since, ok := r.Ready(live, now)                                 reports whether an object is ready
//	Drops(before, after)                                            reports whether something must be removed
//	Damper                                                          limits how often an object is corrected
//
// Nothing here sends a request: the caller passes the live object, or that it was not read.
// [Decide] asks for it where it is needed, so that an object that need not be read costs one
// request.
package delivery
