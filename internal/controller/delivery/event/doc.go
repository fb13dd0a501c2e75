// Package event records the events of the delivery, and not more of them than a cluster can take, and
// shortens texts to what events and conditions may have.
package event
