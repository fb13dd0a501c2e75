// Package doctor is the command that checks what Arbor needs in a cluster.
package doctor
