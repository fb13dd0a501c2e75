// Package gangs measures how fast gangs are scheduled, against kube-scheduler with the same pods.
package gangs
