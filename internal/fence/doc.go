// Package fence keeps a process that led and was suspended from writing. The manager and the
// scheduler send everything that a leader writes through one.
//
// client-go ends a leader that cannot renew its lease, but only after the renew deadline: a leader
// that was suspended for longer than its lease resumes in the middle of what it did, and continues
// for up to ten seconds while another replica leads.
package fence
