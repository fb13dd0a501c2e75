package oracle

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/gate"
	"github.com/arbor-control/arbor/internal/scheduler/placement"
	"github.com/arbor-control/arbor/internal/scheduler/plainpreemption"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/profiles"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// An Oracle answers what the scheduler would do with a gang, and changes
// nothing. It decides with the scheduler's own code on a copy of the cluster.
type Oracle struct {
	trial  *placement.Trial
	groups *podgroups.Index
	rules  gang.Rules
}

// Open reads a cluster. file is the configuration of the scheduler, if it has
// one; pods must then ask for one of its profiles. Without, whichever scheduler
// they ask for, they are told what this one would do. It ends with ctx.
func Open(ctx context.Context, source *rest.Config, o settings.Options, file string) (*Oracle, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	cfg, err := profiles.Load(ctx, o.Names, file)
	if err != nil {
		return nil, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	source = rest.CopyConfig(source)
	source.QPS = -1
	var complete atomic.Bool
	source.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &failFast{next: next, fail: fail, complete: &complete}
	})
	client, err := clientset.NewForConfig(source)
	if err != nil {
		return nil, err
	}
	factory := kubescheduler.NewInformerFactory(client, 0)
	oracle := &Oracle{rules: o.Rules()}
	if oracle.groups, err = podgroups.New(source, client, factory, oracle.rules); err != nil {
		return nil, err
	}
	if oracle.trial, err = placement.NewTrial(ctx, client, source, factory, cfg, frameworkruntime.Registry{
		profiles.Gang: gate.NewPlugin(oracle.groups, nil, nil), profiles.Preemption: plainpreemption.New(oracle.groups), profiles.Packing: placement.NewPacking,
	}); err != nil {
		return nil, err
	}
	if file == "" {
		oracle.trial.AnswerAny(o.Names[0])
	}
	oracle.trial.SetNominated(podgroups.NominatedIn(oracle.groups))
	factory.Start(ctx.Done())
	for _, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return nil, context.Cause(ctx)
		}
	}
	if err := oracle.groups.Start(ctx); err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	complete.Store(true)

	return oracle, nil
}

// Group returns a PodGroup of the cluster with the pods that name it.
func (o *Oracle) Group(key types.NamespacedName) (*v2alpha2.PodGroup, []*corev1.Pod) {
	return o.groups.Group(key), o.groups.Members(key)
}

// Groups names the PodGroups of the cluster.
func (o *Oracle) Groups() []types.NamespacedName {
	var keys []types.NamespacedName
	for _, item := range o.groups.PodGroups.GetStore().List() {
		if pg, ok := item.(*v2alpha2.PodGroup); ok {
			keys = append(keys, types.NamespacedName{Namespace: pg.Namespace, Name: pg.Name})
		}
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})

	return keys
}

// Priority is that of a class, or what pods have that name none. It is false
// for a class that the cluster does not have.
func (o *Oracle) Priority(class string) (int32, bool) {
	if class != "" {
		c, err := o.groups.Classes.Get(class)
		if err != nil {
			return 0, false
		}

		return c.Value, true
	}
	all, err := o.groups.Classes.List(labels.Everything())
	if err != nil {
		return 0, false
	}
	for _, c := range all {
		if c.GlobalDefault {
			return c.Value, true
		}
	}

	return 0, true
}

// Fit says what would become of a group and its pods if they were there now.
func (o *Oracle) Fit(ctx context.Context, pg *v2alpha2.PodGroup, pods []*corev1.Pod) (*decide.Answer, error) {
	g, why := decide.Read(pg, pods, o.rules)
	if why != nil {
		return &decide.Answer{Refusal: why}, nil
	}
	done, err := o.trial.Open(ctx, func(pod *corev1.Pod) *corev1.Pod { return pod })
	if err != nil {
		return nil, err
	}
	defer done()
	o.trial.About(types.NamespacedName{Namespace: pg.Namespace, Name: pg.Name})
	answer := &decide.Answer{Gang: g, For: -1}
	if answer.Decision, err = o.trial.Place(ctx, g, o.groups.Priority(pg, pods)); err != nil {
		return nil, err
	}
	answer.For = without(g, &answer.Decision)
	if answer.For >= 0 {
		answer.Rooms, err = o.trial.Rooms(ctx, g, answer.For)
	}

	return answer, err
}

// without returns the first member that has found no place, of the subgroup
// that stands in the way if there is one.
func without(g *decide.Gang, d *gang.Decision) int {
	placed := map[int]bool{}
	for _, p := range d.Places {
		placed[p.Member] = true
	}
	leaf := d.Blocker
	for leaf >= 0 && d.Nodes[leaf].Blocker >= 0 {
		leaf = d.Nodes[leaf].Blocker
	}
	first := -1
	for i, m := range g.Members {
		if m.State != gang.Waiting || placed[i] {
			continue
		}
		if m.Leaf == leaf {
			return i
		}
		if first < 0 {
			first = i
		}
	}

	return first
}
