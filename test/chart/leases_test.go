package chart_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
)

// renewDeadline is how long manager and scheduler try to renew a lease before they give up.
const renewDeadline = 10 * time.Second

// The API server keeps seats for the leases of manager and scheduler. While their other requests
// get none at all, both renew their leases; without the FlowSchema of the chart both lose them.
func TestLeasesAreNotStarved(t *testing.T) {
	cases := map[string]struct {
		reason string
		value  string
		keeps  bool
	}{
		"seats":  {"Leases have a priority level of their own.", "flowSchema.enabled=true", true},
		"shared": {"Without it, leases wait with all other requests of the account.", "flowSchema.enabled=false", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newTheatre(t, "arbor-"+name, tc.value)
			m := h.release.start(t)
			s := h.start(t)
			leases := map[string]*cluster.Process{"arbor-manager": m.Process, "arbor-scheduler": s.Process}
			holders := map[string]string{}
			for name := range leases {
				cluster.Eventually(t, name+" has a holder", func() error {
					holder, _, err := h.lease(t, name)
					if holders[name] = holder; holder == "" {
						return errors.Join(errors.New("it has none"), err)
					}

					return nil
				})
			}

			h.starve(t)
			starved := time.Now()
			for name, process := range leases {
				if !tc.keeps {
					if code := process.ExitCode(); code == 0 {
						t.Errorf("%s\nthe holder of %s ended with exit code 0", tc.reason, name)
					}

					continue
				}
				cluster.Eventually(t, name+" is renewed after the deadline", func() error {
					select {
					case <-process.Done():
						t.Fatalf("%s\nthe holder of %s has ended", tc.reason, name)
					default:
					}
					holder, renewed, err := h.lease(t, name)
					if holder != holders[name] || renewed.Before(starved.Add(renewDeadline+2*time.Second)) {
						return errors.Join(fmt.Errorf("%s renewed it at %s", holder, renewed), err)
					}

					return nil
				})
			}
			if err := h.served(t); err == nil {
				t.Error("other requests were served in the end: this test proves nothing")
			}
		})
	}
}

// lease returns the holder of a lease of the release, and when it was renewed.
func (h *theatre) lease(t *testing.T, name string) (holder string, renewed time.Time, err error) {
	t.Helper()
	l := &coordinationv1.Lease{}
	if err := h.Get(t.Context(), client.ObjectKey{Namespace: h.release.name, Name: name}, l); err != nil {
		return "", time.Time{}, err
	}
	if l.Spec.HolderIdentity == nil || l.Spec.RenewTime == nil {
		return "", time.Time{}, nil
	}

	return *l.Spec.HolderIdentity, l.Spec.RenewTime.Time, nil
}

// starve gives all requests of manager and scheduler a priority level without seats, unless a
// FlowSchema with a lower precedence matches them, and waits until that is in force.
func (h *theatre) starve(t *testing.T) {
	t.Helper()
	name := h.release.name + "-starved"
	level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementLimited,
		Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: new(int32(0)), BorrowingLimitPercent: new(int32(0)),
			LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 1, HandSize: 1, QueueLengthLimit: 100}},
		},
	}}
	rule := flowcontrolv1.PolicyRulesWithSubjects{
		ResourceRules:    []flowcontrolv1.ResourcePolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"*"}, ClusterScope: true}},
		NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
	}
	for _, component := range []string{"-manager", "-scheduler"} {
		rule.Subjects = append(rule.Subjects, flowcontrolv1.Subject{
			Kind: rbacv1.ServiceAccountKind, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: h.release.name, Name: h.release.name + component},
		})
	}
	flow := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: name}, MatchingPrecedence: 1000,
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{rule},
	}}
	for _, o := range []client.Object{level, flow} {
		must(t, h.Create(t.Context(), o))
		t.Cleanup(func() { must(t, h.Delete((&lasting{t}).Context(), o)) })
	}
	cluster.Eventually(t, "requests of the manager are not served", func() error {
		if h.served(t) == nil {
			return errors.New("they are")
		}

		return nil
	})
}

// served sends a request that is none for a lease, as the manager.
func (h *theatre) served(t *testing.T) error {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", h.release.late.Kubeconfig)
	must(t, err)
	c, err := client.New(config, client.Options{Mapper: h.RESTMapper()})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()

	return c.Get(ctx, client.ObjectKey{Name: h.release.name}, &corev1.Namespace{})
}
