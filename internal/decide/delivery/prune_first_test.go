package delivery_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/decide/delivery"
)

func TestPruneFirst(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   delivery.PruneFirst
		again  string
	}{
		"Empty":   {reason: "There is no request."},
		"Several": {"Groups and namespaces are optional.", "u-1 Service/shop/web Deployment.apps/shop/web ClusterRole.rbac.authorization.k8s.io/view", delivery.PruneFirst{Synthesis: "u-1", Objects: []delivery.Identity{{Kind: "Service", Namespace: "shop", Name: "web"}, {Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "view"}}}, ""},
		"Invalid": {"What names no object is ignored.", "u-1  web Service/shop/web a/b/c/d", delivery.PruneFirst{Synthesis: "u-1", Objects: []delivery.Identity{{Kind: "Service", Namespace: "shop", Name: "web"}}}, "u-1 Service/shop/web"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := delivery.ParsePruneFirst(tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			want := tc.again
			if want == "" {
				want = tc.text
			}
			if again := got.String(); again != want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, again, want)
			}
		})
	}
}
