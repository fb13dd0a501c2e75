// Package owners shows who owns which field of an object, and what a move of fields would change.
package owners
