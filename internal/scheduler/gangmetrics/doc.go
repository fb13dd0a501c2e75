// Package gangmetrics has the metrics that the scheduler exports beyond those of
// kube-scheduler.
package gangmetrics
