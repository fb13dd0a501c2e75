package delivery

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/kube"
)

// denials are the objects of a composition that its account has no permission for. They have
// their own lock: successive views share them.
type denials struct {
	mu  sync.Mutex
	all map[decide.Identity]tenancy.Denial
	// unsureUntil is until when there may be denials that an earlier manager has reported, zero if it
	// has not.
	unsureUntil time.Time
}

func newDenials() *denials { return &denials{all: map[decide.Identity]tenancy.Denial{}} }

// note records a denial, and reports whether it is another one than before. The zero value
// removes it.
func (d *denials) note(id decide.Identity, denial tenancy.Denial) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all[id] == denial {
		return false
	}
	if denial == (tenancy.Denial{}) {
		delete(d.all, id)
	} else {
		d.all[id] = denial
	}

	return true
}

// keep removes the denials of all other objects.
func (d *denials) keep(byID map[decide.Identity]*item) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.all {
		if byID[id] == nil {
			delete(d.all, id)
		}
	}
}

// list returns all denials.
func (d *denials) list() []tenancy.Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]tenancy.Denial, 0, len(d.all))
	for _, one := range d.all {
		all = append(all, one)
	}

	return all
}

// unsure reports whether there may be denials that are not known yet.
func (d *denials) unsure(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()

	return len(d.all) == 0 && now.Before(d.unsureUntil)
}

// deniedCondition is the condition about permissions that are missing.
func (v *view) deniedCondition() metav1.Condition {
	worst := tenancy.Summarize(v.denials.list())

	return metav1.Condition{Type: enov1.ConditionAccessDenied, Reason: worst.Reason, Message: clip(worst.Message)}
}

// as returns a context whose requests are sent as the account of a composition.
func (v *view) as(ctx context.Context) context.Context {
	if v == nil || v.account == (tenancy.Account{}) {
		return ctx // the client of tenants sends nothing
	}

	return kube.AsUser(ctx, v.account.Username())
}
