// Package fit_test asks first and looks afterwards: what arbor groups says of a
// gang is what the scheduler does with it.
package fit_test

import (
	"os"
	"testing"

	"github.com/arbor-control/arbor/test/cluster"
)

var server *cluster.Up

// There are no nodes but those of the tests, and nobody plays them: pods have a
// place when they are bound.
func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, &server, "--nodes=0", "--controllers=podgroups"))
}
