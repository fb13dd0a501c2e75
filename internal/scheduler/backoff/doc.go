// Package backoff keeps gangs from being tried, or from preempting, too often: after a
// failure, when a pod could not be prepared for its node, and when members are missing in
// the queue.
package backoff
