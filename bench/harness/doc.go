// Package harness has what all benchmarks need: a [Board] that compares figures with budgets, a
// control plane to measure on, and the processor time and memory of processes.
package harness
