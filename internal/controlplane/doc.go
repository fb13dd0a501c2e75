// Package controlplane runs a real Kubernetes control plane from one binary.
//
// Kubernetes' components share process globals (flags, logging, feature gates,
// signal handlers), so they cannot share a process. The binary therefore runs
// itself again, once per component, and this package is the parent of those
// children:
//
//	arbor up ──┬── kube-apiserver (with etcd)      first up, last down
//	           ├── kube-controller-manager ┐
//	           ├── kube-scheduler          │       started together,
//	           ├── kwok                    │       stopped together
//	           └── arbor-manager           ┘
//
// The code of the children is in package component, the only one here that links Kubernetes itself.
//
//   - Up (up.go) starts everything, in order.
//   - A home (home.go) is the directory with everything that outlives a run:
//     etcd's data, keys, logs. A file lock, which the children inherit, makes
//     sure that no two runs ever share it, not even with children that
//     outlived a killed parent.
//   - Keys and kubeconfigs are made in credentials.go.
//   - A process (process.go) is one child. It holds the read end of a pipe, its
//     lifeline: when the parent ends, in any way, the pipe closes and the child
//     ends itself.
//   - A supervisor (supervise.go) restarts children that die, with back-off. If
//     that does not help, it ends with the reason that they logged last.
package controlplane
