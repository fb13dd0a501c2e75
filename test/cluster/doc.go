// Package cluster starts real control planes for tests: `arbor up` from the built binary, one
// control plane per test package, in a temporary directory and on free ports.
//
//	var server *cluster.Up
//
//	func TestMain(m *testing.M) {
//		os.Exit(cluster.Main(m, &server, "--bare"))
//	}
//
// When a test fails, the ends of all logs are printed. Managers are started from the built binary
// too, so that they can be killed; see StartManager. They have the permissions of the chart, with
// the file values.yaml of the package, if there is one, as the values of the operator.
//
// Every program ends with the test that started it, also when the test is killed with
// kill -9; only the temporary directory is left then.
package cluster
