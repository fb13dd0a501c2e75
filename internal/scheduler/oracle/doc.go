// Package oracle answers what the scheduler would do with a gang, and changes nothing. It
// decides with the code of the scheduler on a copy of the cluster, which may be a dump.
package oracle
