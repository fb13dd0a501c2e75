// Package delivery is the commands about Compositions: their state, what a synthesis would change, and
// how rollouts are suspended, resumed and rolled back.
package delivery
