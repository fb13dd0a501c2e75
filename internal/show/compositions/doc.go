// Package compositions shows the state of Compositions, their syntheses and resources, and how far
// Synthesizers are rolled out.
package compositions
