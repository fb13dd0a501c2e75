// Package pools is the commands about address pools: what is in them, what claims would get, what is
// wrong with them, and how they are moved.
package pools
