package health_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/decide/health"
	"github.com/arbor-control/arbor/internal/identity"
)

func TestExamineScope(t *testing.T) {
	in := func(namespace string) identity.Identity {
		return identity.Identity{Kind: "ConfigMap", Namespace: namespace, Name: "x"}
	}
	cases := map[string]struct {
		reason string
		facts  health.ScopeFacts
		want   []string
	}{
		"Fine": {
			reason: "Nothing changes.",
			facts:  health.ScopeFacts{Compositions: health.Found[[]health.Delivered]{Is: []health.Delivered{{Namespace: "a", Name: "c", Account: "d", Objects: []identity.Identity{in("a")}}}}},
			want:   []string{"ok : --delivery-scope=namespace changes nothing for the 1 Compositions"},
		},
		"NoAccount": {
			reason: "It would not be delivered.",
			facts:  health.ScopeFacts{Compositions: health.Found[[]health.Delivered]{Is: []health.Delivered{{Namespace: "a", Name: "c"}}}},
			want:   []string{"problem Composition a/c: it has no ServiceAccount, so it would not be delivered"},
		},
		"Outside": {
			reason: "RBAC decides about other namespaces.",
			facts:  health.ScopeFacts{Compositions: health.Found[[]health.Delivered]{Is: []health.Delivered{{Namespace: "a", Name: "c", Account: "d", Objects: []identity.Identity{in("b"), in("a"), in("")}}}}},
			want:   []string{"warning Composition a/c: it delivers objects outside of its namespace: ConfigMap b/x, ConfigMap x"},
		},
		"Lacking": {
			reason: "The first permissions are named.",
			facts:  health.ScopeFacts{Compositions: health.Found[[]health.Delivered]{Is: []health.Delivered{{Namespace: "a", Name: "c", Account: "d", Lacking: []string{"1", "2", "3", "4", "5", "6"}}}}},
			want:   []string{"problem Composition a/c: ServiceAccount a/d may not 1, 2, 3, 4, 5 and 1 more"},
		},
		"Closed": {
			reason: "The manager may not impersonate.",
			facts:  health.ScopeFacts{Closed: health.Found[[]string]{Is: []string{"a"}}},
			want:   []string{"problem Namespace a: the manager may not impersonate ServiceAccounts in this namespace"},
		},
		"Unknown": {
			reason: "What cannot be read is not fine.",
			facts:  health.ScopeFacts{Compositions: health.Found[[]health.Delivered]{Err: errors.New("no")}},
			want:   []string{"unknown : no"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range health.ExamineScope(tc.facts) {
				got = append(got, fmt.Sprintf("%s %s: %s", c.State, c.Object, c.Message))
				if (c.State == health.OK) != (c.Fix == "") && c.State != health.Unknown {
					t.Errorf("%s\n%+v does not say what to do", tc.reason, c)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}
