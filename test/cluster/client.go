package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// Client is NewClient for a test.
func (u *Up) Client(t testing.TB, said func(string)) client.Client {
	t.Helper()
	c, err := u.NewClient(said)
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// NewClient returns a client that knows Kubernetes' kinds and all of Arbor's. Each warning of the
// API server is passed to said, if it is not nil.
func (u *Up) NewClient(said func(string)) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v2alpha2.AddToScheme, v1alpha1.AddToScheme, enov1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	config := rest.CopyConfig(u.Config)
	config.WarningHandler = rest.NoWarnings{}
	if said != nil {
		config.WarningHandler = warnings(said)
	}

	return client.New(config, client.Options{Scheme: scheme})
}

type warnings func(string)

// HandleWarningHeader takes a warning of the API server.
func (w warnings) HandleWarningHeader(_ int, _, text string) { w(text) }

// Namespace makes a namespace for one test.
func Namespace(t testing.TB, c client.Client) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}

	return ns.Name
}
