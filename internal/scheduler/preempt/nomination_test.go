package preempt

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/testcluster"
)

// The informer never shows what is written here. A nomination is removed all the same,
// and can be written again after that.
func TestNominationsAndALateInformer(t *testing.T) {
	var got []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, r.Method+" "+r.URL.Path+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1"}`))
	}))
	defer api.Close()
	client, err := clientset.NewForConfig(&rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	pod := schedulertest.Member("high", 0, 1)
	g := testcluster.Open(t, schedulertest.Node(0, 4), schedulertest.Group("high", 1), pod).Groups
	g.Client = client

	var want []string
	write := func(node string, patches ...string) {
		t.Helper()
		if err := g.SetNominatedNode(t.Context(), pod, node); err != nil {
			t.Fatal(err)
		}
		for _, patch := range patches {
			want = append(want, "PATCH /api/v1/namespaces/default/pods/high-0/status "+patch)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("After nomination to %q the requests differ (-want +got):\n%s", node, diff)
		}
		if may := g.MayBeNominated(pod); may != (node != "") {
			t.Errorf("After nomination to %q the pod may be nominated: %t.", node, may)
		}
	}
	const set, unset = `{"metadata":{"uid":"high-0"},"status":{"nominatedNodeName":"node-0000"}}`, `{"metadata":{"uid":"high-0"},"status":{"nominatedNodeName":null}}`
	write("") // it has none
	write("node-0000", set)
	write("", unset)
	write("")
	write("node-0000", set)

	api.Close()
	if err := g.SetNominatedNode(t.Context(), pod, ""); err == nil || !g.MayBeNominated(pod) {
		t.Errorf("A request that failed (%v) has to be repeated.", err)
	}
	g.IsOwnChange(pod, nil)
	if g.MayBeNominated(pod) {
		t.Error("A pod that is gone is remembered.")
	}
}
