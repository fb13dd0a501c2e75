//go:build race

package delivery_test

// slowdown is how much slower the race detector makes expressions, whose time is limited.
const slowdown = 10
