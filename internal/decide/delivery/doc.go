// Package delivery decides what becomes of the manifests of a synthesis.
//
//	r, err := NewReader().Read(manifest, composition.Annotations)   what a manifest says
//	r, states, err := r.Override(live, composition)                 what its overrides make of it
//	s := NewSchedule(resources, deleting)                           which of them may be worked on now
//	a := Decide(r, Situation{…})                                    what to do about one of them
//	since, ok := r.Ready(live, now)                                 whether an object is ready
//	Drops(before, after)                                            whether something has to go
//	Damper                                                          when to stop correcting somebody
//
// Nothing here talks to a server: whoever calls brings the live object, or says
// that it was not looked at. [Decide] asks for it where it is needed, so that what
// can be done blindly costs one request.
package delivery
