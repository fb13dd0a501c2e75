package delivery

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// reportAfter is after how many failures users are informed.
const reportAfter = 3

// A Failure is an attempt to deliver a resource that failed, after a number of earlier ones.
type Failure struct {
	Err   error
	Tries int
	// Canceled is true if the manager stops.
	Canceled bool
	// BaseVersion is the version of the live object that overrides were evaluated with, "" if there
	// are none.
	BaseVersion string
	// Permanent is true if no attempt can succeed.
	Permanent bool
}

// IsPassing reports whether the failure is not recorded, because the next attempt probably
// succeeds: the manager stops, or another client was faster. That client may have changed what
// overrides depend on, and they are evaluated first.
func (f Failure) IsPassing() bool {
	return f.Canceled || f.BaseVersion != "" && apierrors.IsConflict(f.Err) && f.Tries < reportAfter
}

// IsReported reports whether an event is recorded.
func (f Failure) IsReported() bool { return f.Tries >= reportAfter || f.Permanent }

// FailedState is the state of a resource that the cluster could not be made to agree with. If the
// resource fails open, it counts as delivered, or as deleted if it is going.
func (r *Resource) FailedState(message string, going bool, now metav1.Time) enov1.ResourceState {
	s := enov1.ResourceState{ReconciliationError: &message}
	if r.FailOpen && (!going || !r.Foreground) {
		s.Reconciled, s.Ready, s.Deleted = true, &now, going
	}

	return s
}
