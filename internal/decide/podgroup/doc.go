// Package podgroup decides whether a PodGroup is valid. All callers get the
// same decision and the same text:
//
//	admission webhook ── Admit(before, after) ─┐
//	linter, audit ────── Lint, Check(group) ───┼── the rules ── Verdict
//	status controller ── Valid(group, now) ────┘  (podtree)     problems: reject
//	                                                            warnings: print
//	scheduler ────────── Tree(group) ───────────── the tree, or why there is none
//
// A problem breaks the rule for subgroups, or is a duration that cannot be
// read, and rejects the object; it has a message, the field and a fix. A warning is about something
// that is allowed but cannot work or has no effect: it never rejects anything.
//
// A [Guard] selects the PriorityClasses that only some users may name. Whether
// the author of a change is one of them is for the caller to find out.
//
// # Updates
//
// A rule that is newer than the objects must not lock them. Admit rejects an
// update only if it changes the list of subgroups, or a duration, and leaves an
// invalid one; everything else, such as labels, finalizers, status and other
// fields of the spec, passes with a warning that what is stored is invalid.
//
// Everything here is a function of its arguments: equal arguments give equal
// text.
package podgroup
