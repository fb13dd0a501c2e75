// Package manager puts Arbor's controllers and webhooks together and runs them
// against a cluster.
//
// Options (options.go) are the flags; parts.go lists the components that --controllers can enable;
// Run (run.go) is the order in which things start: the CRDs of the enabled components, then
// certificates, webhooks and controllers, then the registration of the webhooks.
package manager
