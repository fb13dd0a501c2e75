package registry

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

func TestBacklog(t *testing.T) {
	named := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "n", Name: name} }
	unread := func(pairs ...string) (all []unreadEntry) {
		for pair := range slices.Chunk(pairs, 2) {
			all = append(all, unreadEntry{name: named(pair[0]), version: pair[1]})
		}

		return all
	}
	none := func(types.NamespacedName) bool { return false }
	a, b, own := &model.Composition{Name: named("a")}, &model.Composition{Name: named("b")}, &model.Composition{Name: named("x")}
	all := newBacklog(tenancy.Cluster.Tenant)
	names := func(views []*model.Composition) (got []string) {
		for _, v := range views {
			got = append(got, v.Name.Name)
		}

		return got
	}
	check := func(reason string, want, got any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", reason, diff)
		}
	}
	all.add(a, unread("x", "5"))
	all.add(b, unread("x", "7", "y", "3"))
	all.add(own, unread("x", "7"))
	check("a view waits for what was unread", "n/x", all.unreadFor(a, none))
	check("and not for itself", "n/y", all.unreadFor(own, none))
	check("what is passed over does not count", "", all.unreadFor(a, func(types.NamespacedName) bool { return true }))
	check("an older version is of no use", []string(nil), names(all.read(named("x"), "6")))
	check("nor is another composition", []string(nil), names(all.read(named("z"), "9")))
	all.add(a, unread("x", "7")) // it comes again, as the last one
	check("both are read", []string(nil), names(all.read(named("x"), "7")))
	check("the view that waits for the rest goes on", []string{"b", "x", "a"}, names(all.read(named("y"), "3")))
	check("no composition waits", "", all.unreadFor(b, none))
	all.add(a, nil)
	check("a view that waits for nothing is not entered", 0, len(all.tenants))
	all.add(a, unread("x", "1"))
	all.remove(a)
	check("a view that is gone is not released", []string(nil), names(all.read(named("x"), "1")))
	check("no queue is left", 0, len(all.tenants))
}

// TestBacklogOfTenants has a view of a tenant wait for a composition that cannot be read, and
// then one of another tenant for a composition that is read.
func TestBacklogOfTenants(t *testing.T) {
	cases := map[string]struct {
		reason   string
		scope    tenancy.Scope
		released bool
		unread   string
	}{
		"Namespace": {"A tenant neither delays another one nor is named to it.", tenancy.Namespace, true, ""},
		"Cluster":   {"All compositions share their objects, and wait for each other.", tenancy.Cluster, false, "team-a/broken"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			named := func(namespace, name string) types.NamespacedName {
				return types.NamespacedName{Namespace: namespace, Name: name}
			}
			none := func(types.NamespacedName) bool { return false }
			x, y := &model.Composition{Name: named("team-a", "x")}, &model.Composition{Name: named("team-b", "y")}
			b := newBacklog(tc.scope.Tenant)
			b.add(x, []unreadEntry{{name: named("team-a", "broken"), version: "1"}})
			b.add(y, []unreadEntry{{name: named("team-b", "other"), version: "1"}})
			released := b.read(named("team-b", "other"), "1")
			if got := slices.Contains(released, y); got != tc.released {
				t.Errorf("%s\nreleased: %t", tc.reason, got)
			}
			if diff := cmp.Diff(tc.unread, b.unreadFor(y, none)); diff != "" {
				t.Errorf("%s\nit waits for: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff("team-a/broken", b.unreadFor(x, none)); diff != "" {
				t.Errorf("%s\nthe first view waits for: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// BenchmarkBacklog has 5,000 views wait for 5,000 compositions, as after a restart.
func BenchmarkBacklog(b *testing.B) {
	const many = 5_000
	var unread []unreadEntry
	for i := range many {
		unread = append(unread, unreadEntry{name: types.NamespacedName{Namespace: "n", Name: strconv.Itoa(i)}, version: "1"})
	}
	b.ReportAllocs()
	for b.Loop() {
		all := newBacklog(tenancy.Cluster.Tenant)
		for i := range many {
			all.add(&model.Composition{Name: types.NamespacedName{Namespace: "d", Name: strconv.Itoa(i)}}, unread)
		}
		released := 0
		for _, one := range unread {
			released += len(all.read(one.name, "1"))
		}
		if released != many {
			b.Fatalf("%d views were released", released)
		}
	}
}
