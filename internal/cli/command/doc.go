// Package command holds what every command has: exit codes, the errors that carry them, the check of
// arguments, and flags that several commands share.
package command
