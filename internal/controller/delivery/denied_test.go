package delivery

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/load"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// TestRecallDenials has a manager start that does not know yet what an earlier one has reported.
func TestRecallDenials(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	d := idle()
	d.Now = func() time.Time { return now }
	d.Scope = tenancy.Namespace
	c, slices := tenantComposition("a", false)
	c.Status.Conditions = []metav1.Condition{{Type: enov1.ConditionAccessDenied, Status: metav1.ConditionTrue, Reason: enov1.ReasonOutOfScope}}
	v := d.NewView(c, slices)
	d.RestoreDenials(v, c)
	written := func() bool {
		for _, cond := range d.conditions(v) {
			if cond.Type == enov1.ConditionAccessDenied {
				return true
			}
		}

		return false
	}
	if written() {
		t.Error("the condition is removed before anything was attempted")
	}
	v.Denials.Note(v.Items[0].Identity, tenancy.Denial{Reason: enov1.ReasonWriteForbidden, Message: "m"})
	if !written() {
		t.Error("a denial is not reported")
	}
	v.Denials.Note(v.Items[0].Identity, tenancy.Denial{})
	now = now.Add(load.FirstAttempts)
	if !written() {
		t.Error("the condition stays although everything was attempted")
	}
}

// TestTenantClient has a manager that impersonates already.
func TestTenantClient(t *testing.T) {
	if _, err := tenantClient(&rest.Config{Host: "http://127.0.0.1:1", Impersonate: rest.ImpersonationConfig{UserName: "x"}}, nil); err == nil {
		t.Error("a request cannot be sent as two users")
	}
}
