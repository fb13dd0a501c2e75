// Package gate is the plugin before the scheduling queue. It holds the pods of a gang until
// the PodGroup is valid and complete, and sorts the queue by priority and the age of groups.
package gate
