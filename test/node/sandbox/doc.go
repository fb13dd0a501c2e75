// Package sandbox runs a test binary in namespaces and cgroups of its own, so that a
// kubelet and its containers can run on any machine and leave nothing behind.
//
//	func TestMain(m *testing.M) {
//		os.Exit(sandbox.Main(m))
//	}
//
// The binary runs itself several times, each process with one role:
//
//	go test ── outside ──┬── janitor   removes the cgroups when outside has ended, however it ended
//	                     └── init      PID 1 of the namespaces: mounts, cgroups, loopback; reaps orphans
//	                           └── inside    runs the tests
//
// Everything that the tests start is in the PID namespace of init. When one of outside, init
// and inside ends, also by kill -9, the kernel kills the rest, and with the last process the
// mounts, interfaces and files disappear: all files that programs write are in a tmpfs of
// the mount namespace.
package sandbox
