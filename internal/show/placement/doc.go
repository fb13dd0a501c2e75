// Package placement shows where the pods of a PodGroup are or would be, and what is missing.
package placement
