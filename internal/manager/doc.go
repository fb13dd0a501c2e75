// Package manager puts Arbor's controllers and webhooks together and runs them
// against a cluster.
//
// Options (options.go) are the flags; parts.go lists what can be switched on
// with --controllers; Run (run.go) is the order in which things start: the
// custom resource definitions of the parts that are on, then certificates,
// webhooks and controllers, then the registration of the webhooks.
package manager
