package scheduler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGuardedLast(t *testing.T) {
	pod := func(namespace, name, app string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}}}
	}
	one := func(name, app string) unit { return unit{pods: []*corev1.Pod{pod("ns", name, app)}} }
	pdb := func(selector *metav1.LabelSelector, allowed int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
		}
	}
	app := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	}
	going := pdb(app("web"), 0)
	going.Status.DisruptedPods = map[string]metav1.Time{"a": {}}
	cases := map[string]struct {
		reason string
		units  []unit
		pdbs   []*policyv1.PodDisruptionBudget
		want   []string // the first pod of each unit
	}{
		"None":      {"The order is as it was.", []unit{one("a", "web"), one("b", "db")}, nil, []string{"a", "b"}},
		"Guarded":   {"It comes last.", []unit{one("a", "web"), one("b", "db")}, []*policyv1.PodDisruptionBudget{pdb(app("web"), 0)}, []string{"b", "a"}},
		"Allowed":   {"One may go, the other not.", []unit{one("a", "web"), one("b", "web"), one("c", "db")}, []*policyv1.PodDisruptionBudget{pdb(app("web"), 1)}, []string{"a", "c", "b"}},
		"Everybody": {"An empty selector is about all pods of the namespace.", []unit{one("a", "web"), {pods: []*corev1.Pod{pod("other", "b", "web")}}}, []*policyv1.PodDisruptionBudget{pdb(&metav1.LabelSelector{}, 0)}, []string{"b", "a"}},
		"Nobody":    {"None is about none.", []unit{one("a", "web"), one("b", "db")}, []*policyv1.PodDisruptionBudget{pdb(nil, 0)}, []string{"a", "b"}},
		"Gang":      {"One of its pods is enough.", []unit{{pods: []*corev1.Pod{pod("ns", "a", "x"), pod("ns", "b", "web")}}, one("c", "db")}, []*policyv1.PodDisruptionBudget{pdb(app("web"), 0)}, []string{"c", "a"}},
		"Two":       {"All of its budgets must allow it.", []unit{one("a", "web"), one("b", "db")}, []*policyv1.PodDisruptionBudget{pdb(app("web"), 5), pdb(app("web"), 0)}, []string{"b", "a"}},
		"Going":     {"Who is going already is counted.", []unit{one("a", "web"), one("b", "db")}, []*policyv1.PodDisruptionBudget{going}, []string{"a", "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, u := range guardedLast(tc.units, tc.pdbs) {
				got = append(got, u.pods[0].Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
