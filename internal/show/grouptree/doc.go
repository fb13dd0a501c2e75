// Package grouptree shows the tree that the subgroups of a PodGroup form, also if they form none: then parts
// of it are loose, because a parent is missing or subgroups are each other's ancestors.
package grouptree
