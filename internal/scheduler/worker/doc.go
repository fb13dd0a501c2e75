// Package worker runs the workers of the scheduler. A panic in one of them affects the group
// that it deals with, and no other.
package worker
