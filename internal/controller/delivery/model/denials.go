package model

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/kube"
)

// denials are the objects of a composition that its account has no permission for. They have
// their own lock: successive views share them.
type denials struct {
	mu  sync.Mutex
	all map[decide.Identity]tenancy.Denial
	// UnsureUntil is until when there may be denials that an earlier manager has reported, zero if it
	// has not.
	UnsureUntil time.Time
}

func newDenials() *denials { return &denials{all: map[decide.Identity]tenancy.Denial{}} }

// Note records a denial, and reports whether it is another one than before. The zero value
// removes it.
func (d *denials) Note(id decide.Identity, denial tenancy.Denial) bool {
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
func (d *denials) keep(byID map[decide.Identity]*Item) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.all {
		if byID[id] == nil {
			delete(d.all, id)
		}
	}
}

// List returns all denials.
func (d *denials) List() []tenancy.Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]tenancy.Denial, 0, len(d.all))
	for _, one := range d.all {
		all = append(all, one)
	}

	return all
}

// Unsure reports whether there may be denials that are not known yet.
func (d *denials) Unsure(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()

	return len(d.all) == 0 && now.Before(d.UnsureUntil)
}

// DeniedCondition is the condition about permissions that are missing.
func (v *Composition) DeniedCondition() metav1.Condition {
	worst := tenancy.Summarize(v.Denials.List())

	return metav1.Condition{Type: enov1.ConditionAccessDenied, Reason: worst.Reason, Message: event.Clip(worst.Message)}
}

// AsAccount returns a context whose requests are sent as the account of a composition.
func (v *Composition) AsAccount(ctx context.Context) context.Context {
	if v == nil || v.Account == (tenancy.Account{}) {
		return ctx // the client of tenants sends nothing
	}

	return kube.AsUser(ctx, v.Account.Username())
}
