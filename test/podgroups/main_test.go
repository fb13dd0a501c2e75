// Package podgroups_test shows pod groups at work on a real API server: the
// webhook over TLS, the condition, the command line.
package podgroups_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

var server *cluster.Up

// The control plane is bare: each test starts the managers that it is about,
// so that it can also stop them.
func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, &server, "--bare", "--nodes=0"))
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v2alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}

	return scheme
}

// newClient returns a client that hands each warning to said.
func newClient(t testing.TB, said func(string)) client.Client {
	t.Helper()
	config := rest.CopyConfig(server.Config)
	config.WarningHandler = rest.NoWarnings{}
	if said != nil {
		config.WarningHandler = warnings(said)
	}
	c, err := client.New(config, client.Options{Scheme: newScheme(t)})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

type warnings func(string)

func (w warnings) HandleWarningHeader(_ int, _, text string) { w(text) }

// newNamespace makes a namespace for one test.
func newNamespace(t *testing.T, c client.Client) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}

	return ns.Name
}

func group(namespace, name string, subGroups ...v2alpha2.SubGroup) *v2alpha2.PodGroup {
	minimum := int32(2)

	return &v2alpha2.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v2alpha2.PodGroupSpec{MinMember: &minimum, Queue: "default", SubGroups: subGroups},
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
