// Package uninstall is the command that removes the finalizers of Arbor.
package uninstall
