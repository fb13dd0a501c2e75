// Package queue has the work queue of resources: its [Key], and an order that is fair to namespaces
// and compositions, so that neither the size nor the failures of one delay another.
package queue
