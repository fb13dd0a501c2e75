// Package podgroups_test tests pod groups on a real API server: the webhook, the condition and the
// command line.
package podgroups_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

var server *cluster.Up

// podGroupsOnly leaves out the other parts, which take their time to start.
const podGroupsOnly = "--controllers=podgroups"

// The control plane is bare: each test starts the managers that it is about,
// so that it can also stop them.
func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, &server, "--bare", "--nodes=0"))
}

// newClient returns a client that hands each warning to said.
func newClient(t testing.TB, said func(string)) client.Client {
	t.Helper()

	return server.Client(t, said)
}

// startManager starts a manager and waits until the API server asks it, which is a
// little later than when it is ready. Until then no webhook is called, or one that is gone.
func startManager(t *testing.T, args ...string) *cluster.Manager {
	t.Helper()
	m := server.StartManager(t, append([]string{podGroupsOnly}, args...)...)
	awaitDenial(t, newClient(t, nil), metav1.NamespaceDefault)

	return m
}

// awaitDenial waits until a bad tree is rejected by the webhook.
func awaitDenial(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	cluster.Eventually(t, "bad trees are rejected", func() error {
		err := c.Create(t.Context(), group(namespace, "probe", sub("Bad")), client.DryRunAll)
		if err != nil && strings.HasPrefix(err.Error(), denied) {
			return nil
		}

		return errors.Join(errors.New("not denied"), err)
	})
}

func group(namespace, name string, subGroups ...v2alpha2.SubGroup) *v2alpha2.PodGroup {
	minimum := int32(2)

	return &v2alpha2.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v2alpha2.PodGroupSpec{MinMember: &minimum, SubGroups: subGroups},
	}
}

func sub(name string) v2alpha2.SubGroup {
	minimum := int32(1)

	return v2alpha2.SubGroup{Name: name, MinMember: &minimum}
}

func under(parent, name string) v2alpha2.SubGroup {
	s := sub(name)
	s.Parent = &parent

	return s
}
