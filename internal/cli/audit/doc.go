// Package audit is the command that checks the objects of a cluster, and the ownership of containers.
package audit
