// Package load reads compositions and their slices into the model, and repairs slices that other
// clients have changed or deleted.
package load
