package podgroups_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

const denied = `admission webhook "podgroups.admission.arbor" denied the request: `

// verdict of the API server on a write: "" or what the webhook said.
func verdict(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || !strings.HasPrefix(err.Error(), denied) {
		t.Fatalf("not a denial: %v", err)
	}

	return strings.TrimPrefix(err.Error(), denied)
}

func TestExamples(t *testing.T) {
	startManager(t)
	c := newClient(t, nil)

	cases := map[string]struct {
		reason string
		want   string
	}{
		"podgroup-valid.yaml":             {"Lower case names are accepted.", ""},
		"podgroup-hierarchy.yaml":         {"A tree of two levels is fine.", ""},
		"podgroup-mixed-case.yaml":        {"An upper case name is rejected.", `subgroup name "Master" must be lowercase`},
		"podgroup-mixed-case-parent.yaml": {"An upper case parent is rejected.", `parent of subgroup "workers": subgroup name "Master" must be lowercase`},
		"podgroup-camel-case.yaml":        {"Of several, the first is named.", `subgroup name "dataLoader" must be lowercase`},
	}

	files, err := filepath.Glob(filepath.Join(cluster.Root(), "examples", "podgroup-*.yaml"))
	if err != nil || len(files) != len(cases) {
		t.Fatalf("examples are %v (%v), the table has %d", files, err, len(cases))
	}
	for _, file := range files {
		name := filepath.Base(file)
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			pg := readGroup(t, file)
			pg.Namespace = cluster.Namespace(t, c)
			if got := verdict(t, c.Create(t.Context(), pg, client.FieldValidation("Strict"))); got != tc.want {
				t.Errorf("%s\ngot  %q\nwant %q", tc.reason, got, tc.want)
			}
		})
	}
}

func readGroup(t *testing.T, file string) *v2alpha2.PodGroup {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	pg := &v2alpha2.PodGroup{}
	must(t, yaml.UnmarshalStrict(data, pg))

	return pg
}

func TestCreate(t *testing.T) {
	startManager(t)
	var (
		mu   sync.Mutex
		said []string
	)
	c := newClient(t, func(w string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, w)
	})
	ns := cluster.Namespace(t, c)
	zero, three := int32(0), int32(3)
	long := strings.Repeat("a", 64)

	type causes map[string]string // field to message
	cases := map[string]struct {
		reason   string
		groups   []v2alpha2.SubGroup
		want     string
		causes   causes
		warnings []string
	}{
		"Lowercase": {
			reason: "A valid group is accepted.",
			groups: []v2alpha2.SubGroup{sub("master"), under("master", "worker-1")},
		},
		"None": {
			reason: "Subgroups are optional.",
		},
		"Name": {
			reason:   "An upper case name is rejected, and the answer reports what to write.",
			groups:   []v2alpha2.SubGroup{sub("Workers")},
			want:     `subgroup name "Workers" must be lowercase`,
			causes:   causes{"spec.subGroups[0].name": `subgroup name "Workers" must be lowercase`},
			warnings: []string{`spec.subGroups[0].name: rename it to "workers"`},
		},
		"Parent": {
			reason:   "An upper case parent is rejected.",
			groups:   []v2alpha2.SubGroup{sub("master"), under("Master", "workers")},
			want:     `parent of subgroup "workers": subgroup name "Master" must be lowercase`,
			causes:   causes{"spec.subGroups[1].parent": `parent of subgroup "workers": subgroup name "Master" must be lowercase`},
			warnings: []string{`spec.subGroups[1].parent: write "master"`},
		},
		"Duplicate": {
			reason: "Pods of two subgroups with one name could not be distinguished.",
			groups: []v2alpha2.SubGroup{sub("workers"), sub("workers")},
			want:   "duplicate subgroup name workers",
			causes: causes{"spec.subGroups[1].name": "duplicate subgroup name workers"},
		},
		"Missing": {
			reason: "A parent must be in the list.",
			groups: []v2alpha2.SubGroup{under("master", "workers")},
			want:   "parent master of workers was not found",
			causes: causes{"spec.subGroups[0].parent": "parent master of workers was not found"},
		},
		"Cycle": {
			reason: "A cycle has no root.",
			groups: []v2alpha2.SubGroup{under("b", "a"), under("a", "b")},
			want:   "cycle detected in subgroups: a -> b -> a",
			causes: causes{"spec.subGroups[0].parent": "cycle detected in subgroups: a -> b -> a"},
		},
		"All": {
			reason: "The message is the first violation in list order, the causes are all of them.",
			groups: []v2alpha2.SubGroup{under("nobody", "a"), sub("B"), sub("a")},
			want:   `subgroup name "B" must be lowercase`,
			causes: causes{
				"spec.subGroups[1].name":   `subgroup name "B" must be lowercase`,
				"spec.subGroups[2].name":   "duplicate subgroup name a",
				"spec.subGroups[0].parent": "parent nobody of a was not found",
			},
		},
		"OlderShapes": {
			reason: "A minimum of 0 on a parent, or none at all, was valid once.",
			groups: []v2alpha2.SubGroup{{Name: "top", MinMember: &zero}, {Name: "leaf", Parent: &[]string{"top"}[0]}},
		},
		"TooLong": {
			reason:   "No label can hold this name, so no pod can join: allowed, with a warning.",
			groups:   []v2alpha2.SubGroup{sub(long)},
			warnings: []string{"no pod can join"},
		},
		"TooMany": {
			reason:   "More children are required than there are: allowed, with a warning.",
			groups:   []v2alpha2.SubGroup{{Name: "top", MinSubGroup: &three}, under("top", "leaf")},
			warnings: []string{"can never be satisfied"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			said = nil
			err := c.Create(t.Context(), group(ns, strings.ToLower(name), tc.groups...))
			if got := verdict(t, err); got != tc.want {
				t.Errorf("%s\ngot  %q\nwant %q", tc.reason, got, tc.want)
			}
			got := causes{}
			if status := apierrors.APIStatus(nil); errors.As(err, &status) {
				for _, cause := range status.Status().Details.Causes {
					got[cause.Field] = cause.Message
				}
			}
			if diff := cmp.Diff(tc.causes, got); diff != "" && len(tc.causes)+len(got) > 0 {
				t.Errorf("%s\ncauses (-want +got):\n%s", tc.reason, diff)
			}
			for _, w := range tc.warnings {
				if !strings.Contains(strings.Join(said, "\n"), w) {
					t.Errorf("%s\nno warning contains %q; there were %q", tc.reason, w, said)
				}
			}
			if tc.want == "" && len(tc.warnings) == 0 && len(said) > 0 {
				t.Errorf("%s\nunasked warnings: %q", tc.reason, said)
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	startManager(t)
	c := newClient(t, nil)
	pg := group(cluster.Namespace(t, c), "g", sub("master"))
	if err := c.Create(t.Context(), pg); err != nil {
		t.Fatal(err)
	}
	err := update(t, c, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.SubGroups[0].Name = "Master" })
	if got, want := verdict(t, err), `subgroup name "Master" must be lowercase`; got != want {
		t.Errorf("an update may not break a group: got %q, want %q", got, want)
	}
	if err := update(t, c, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.SubGroups = append(pg.Spec.SubGroups, under("master", "workers")) }); err != nil {
		t.Errorf("an update may extend a group: %v", err)
	}
}

// update changes the newest state of an object.
func update(t *testing.T, c client.Client, pg *v2alpha2.PodGroup, change func(*v2alpha2.PodGroup)) error {
	t.Helper()
	for {
		fresh := &v2alpha2.PodGroup{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pg), fresh); err != nil {
			t.Fatal(err)
		}
		change(fresh)
		if err := c.Update(t.Context(), fresh); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// Every field of the schema survives a round trip: what it lacked, the API server would drop
// silently.
func TestNoFieldIsLost(t *testing.T) {
	startManager(t)
	c := newClient(t, nil)
	const manifest = `
spec:
  minMember: 0
  minSubGroup: 1
  queue: gpu
  priorityClassName: train
  preemptibility: non-preemptible
  markUnschedulable: true
  schedulingBackoff: -1
  preemptionDelay: 30s
  stalenessGracePeriod: -1s
  parallelism: 2
  completions: 3
  backoffLimit: 4
  topologyConstraint: {topology: dc, requiredTopologyLevel: zone, preferredTopologyLevel: rack}
  subGroups:
  - {name: decode, minSubGroup: 1}
  - {name: workers, parent: decode, minMember: 4, topologyConstraint: {topology: dc, requiredTopologyLevel: rack}}
`
	pg := &v2alpha2.PodGroup{}
	if err := yaml.UnmarshalStrict([]byte(manifest), pg); err != nil {
		t.Fatal(err)
	}
	pg.Namespace, pg.Name = cluster.Namespace(t, c), "all"
	want := pg.Spec.DeepCopy()
	if err := c.Create(t.Context(), pg, client.FieldValidation("Strict")); err != nil {
		t.Fatal(err)
	}
	got := &v2alpha2.PodGroup{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pg), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*want, got.Spec); diff != "" {
		t.Errorf("fields were lost (-written +read):\n%s", diff)
	}
}

func TestManyCreatesAtOnce(t *testing.T) {
	const total, clients = 2000, 32
	startManager(t)
	c := newClient(t, nil)
	ns := cluster.Namespace(t, c)

	var next, accepted atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= total {
					return
				}
				good := i%3 != 0
				name := "workers"
				if !good {
					name = "Workers"
				}
				err := c.Create(t.Context(), group(ns, fmt.Sprintf("g-%d", i), sub(name)))
				switch {
				case good && err != nil:
					t.Errorf("good group %d was not created: %v", i, err)
				case !good && (err == nil || !strings.HasPrefix(err.Error(), denied)):
					t.Errorf("bad group %d was not denied: %v", i, err)
				case good:
					accepted.Add(1)
				}
			}
		})
	}
	wg.Wait()

	list := &v2alpha2.PodGroupList{}
	if err := c.List(t.Context(), list, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	if got, want := int64(len(list.Items)), accepted.Load(); got != want {
		t.Errorf("%d groups are stored, %d were accepted", got, want)
	}
	for _, pg := range list.Items {
		if pg.Spec.SubGroups[0].Name != "workers" {
			t.Errorf("bad group %s is stored", pg.Name)
		}
	}
}

// Only creation and update of what is judged are watched over: a webhook that
// sees more can block more when it is away.
func TestWebhookSeesLittle(t *testing.T) {
	server.StartManager(t) // all parts
	config := getRegistration(t, newClient(t, nil))
	sees := make([]string, 0, len(config.Webhooks))
	for _, w := range config.Webhooks {
		for _, r := range w.Rules {
			sees = append(sees, fmt.Sprint(r.Operations, r.APIGroups, r.Resources))
		}
		if *w.TimeoutSeconds > 5 || *w.FailurePolicy != "Fail" {
			t.Errorf("%s: timeout %d, failure policy %s", w.Name, *w.TimeoutSeconds, *w.FailurePolicy)
		}
	}
	want := []string{
		"[CREATE UPDATE] [scheduling.run.ai] [podgroups]",
		"[CREATE UPDATE] [plexaubnet.io] [subnetpools]",
		"[CREATE UPDATE] [plexaubnet.io] [subnets]",
	}
	if diff := cmp.Diff(want, sees); diff != "" {
		t.Errorf("they see (-want +got):\n%s", diff)
	}
}
