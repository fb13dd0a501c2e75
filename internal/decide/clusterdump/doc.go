// Package clusterdump decides what of an object may be in the dump of a cluster: what scheduling looks at,
// and nothing else.
package clusterdump
