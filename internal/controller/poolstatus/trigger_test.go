package poolstatus_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/controller/poolstatus"
)

// onePool is a cache that has one.
type onePool struct{ client.Reader }

func (onePool) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	pool := v1alpha1.SubnetPool{}
	pool.Namespace, pool.Name = "net", "main"
	list.(*v1alpha1.SubnetPoolList).Items = []v1alpha1.SubnetPool{pool}

	return nil
}

// A replica leads some time before its controllers run. A request in between gets the answer to try
// again, and does not wait forever.
func TestTriggerTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elected := make(chan struct{})
		close(elected)
		trigger := poolstatus.NewTrigger(onePool{}, func(context.Context, types.NamespacedName) error { return nil }, elected)
		answer := httptest.NewRecorder()
		trigger.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, poolstatus.TriggerPath+"?namespace=net&pool=main", nil))
		if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" || !strings.Contains(answer.Body.String(), "0 of 1 pools") {
			t.Errorf("it answers %d %v: %s", answer.Code, answer.Header(), answer.Body)
		}
	})
}
