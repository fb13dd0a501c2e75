// Package podgroup decides whether a PodGroup is good, and says so in the
// words that people read, whoever asks:
//
//	admission webhook ── Admit(before, after) ─┐
//	linter, audit ────── Check(group) ─────────┼── the rule ── Verdict
//	status controller ── Valid(group, now) ────┘  (podtree)    problems: refuse
//	                                                           warnings: tell
//	scheduler ────────── Tree(group) ───────────── the tree, or why there is none
//
// A problem breaks the rule for subgroups and refuses the object; its text is
// that of the violation, and beside it stand the field and how to mend it. A
// warning is about something that is allowed and cannot work: it never
// refuses anything.
//
// # Updates
//
// A rule that comes later than the objects must not lock them in. Admit
// refuses an update only if it changes the list of subgroups and leaves a bad
// one; everything else, such as labels, finalizers, status and other fields of
// the spec, passes with one warning that the stored list is bad.
//
// Everything here is a function of its arguments, and the same arguments give
// the same text, letter for letter.
package podgroup
