package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

func TestIsPatched(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "1", "n": int64(2)}}}
	cases := map[string]struct {
		reason, ops string
		want        bool
	}{
		"Holds":      {reason: "It has what is set.", ops: `[{"op": "add", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/n", "value": 2}]`, want: true},
		"Undone":     {reason: "It has another value.", ops: `[{"op": "add", "path": "/data/a", "value": "2"}]`},
		"Absent":     {reason: "It has none.", ops: `[{"op": "add", "path": "/data/b", "value": "1"}]`},
		"Impossible": {reason: "The server returns the reason.", ops: `[{"op": "add", "path": "/spec/b", "value": "1"}]`},
		"Unreadable": {reason: "The server returns that, too.", ops: `{}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			it := &model.Item{Content: model.Content{Resource: &decide.Resource{Identity: decide.Identity{Patch: 1}, Ops: []byte(tc.ops)}}}
			s := situation{Situation: decide.Situation{Drifted: true, Looked: true, Live: live}}
			if got := isPatched(it, s); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
}
