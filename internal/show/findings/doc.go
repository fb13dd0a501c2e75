// Package findings turns untyped objects and unreadable files into findings, by the rules that admission
// applies.
package findings
