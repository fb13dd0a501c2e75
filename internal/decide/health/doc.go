// Package health says what is wrong with Arbor in a cluster, and what to do about
// it. It is told what was found, and asks nobody.
//
// What could not be looked at is neither right nor wrong: such a check is Unknown,
// and says who would have to be asked.
package health
