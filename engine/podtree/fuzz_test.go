package podtree_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/podtree"
)

// parse reads "name;name<parent;…".
func parse(text string) list {
	var groups list
	for part := range strings.SplitSeq(text, ";") {
		name, parent, has := strings.Cut(part, "<")
		g := podtree.SubGroup{Name: name}
		if has {
			g.Parent = &parent
		}
		groups = append(groups, g)
	}

	return groups
}

func FuzzCheck(f *testing.F) {
	for _, text := range []string{
		"", "master;workers<master", "Master;workers<master", "master;workers<Master", "Workers;leaf<Workers",
		"workers;Workers;leaf<Workers", "A;a<A", "a<", "a<b;b<a", "x<d;a<b;b<a;d<d", "a;a;b<a;a<b", ";;x<",
		"a<B;b<a", "\xff;b<\xff", "İ;i<İ", "a<<b;<b", "d<c;c<b;b<a;a",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		groups := parse(text)
		if len(groups) > 64 {
			t.Skip("the twin is cubic")
		}
		got := podtree.Check(groups)
		if again := podtree.Check(groups); !reflect.DeepEqual(got, again) {
			t.Fatalf("Check(%q) twice: -first, +second:\n%s", text, cmp.Diff(got, again))
		}
		if want := twinCheck(groups); !reflect.DeepEqual(want, got) {
			t.Fatalf("Check(%q): -twin, +got:\n%s", text, cmp.Diff(want, got))
		}
		checkTree(t, groups, got)
	})
}
