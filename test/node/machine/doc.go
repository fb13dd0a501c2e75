// Package machine is a node of a control plane: containerd, runc, CNI plugins and a kubelet,
// from bin/node, inside a sandbox.
//
// There is no kube-proxy. The API server calls webhooks at the addresses of pods, and pods
// reach it at the address of its Service, which is an address of this machine with a
// forwarder behind it. Other Services lead nowhere, and NetworkPolicies are not enforced.
package machine
