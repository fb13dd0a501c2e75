// Package profiles puts the plugins of Arbor into the profiles of kube-scheduler.
package profiles
