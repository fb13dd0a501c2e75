// Package version is the command that prints the versions of the client, the cluster and the components.
package version
