// Package node_test runs the chart and the images on a real node: a kubelet, containerd and
// runc, on a real control plane, in namespaces of its own. `make node-test` builds the
// programs and runs it; it needs Linux and root. docs/contribute/node-tests.md has the details.
//
// kwok, which simulates the nodes of all other tests, ends pods at once and has no Services, probes
// and images. What depends on these is tested here: rollouts while requests are admitted,
// permissions of the processes, and everything that can happen to the containers of a synthesis.
//
//	sandbox    namespaces and cgroups, from which nothing is left
//	machine    containerd, CNI plugins and the kubelet
//	image      small images for tests
//	registry   a registry that is slow, or wants a password
//	program    what runs in those images
package node_test
