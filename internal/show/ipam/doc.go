// Package ipam shows pools, what is in them, the trees that they form, and plans.
package ipam
