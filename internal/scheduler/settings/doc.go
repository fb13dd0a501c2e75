// Package settings has the options of arbor-scheduler beyond those of kube-scheduler.
package settings
