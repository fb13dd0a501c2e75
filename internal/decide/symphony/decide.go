package symphony

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// A View is a Symphony and the compositions that it controls, also those that are
// being deleted.
type View struct {
	Symphony     *enov1.Symphony
	Compositions []*enov1.Composition
}

// A Decision is what to do about a Symphony. Everything is done in the order of
// the fields, and the rest is left for the next round as soon as something fails.
type Decision struct {
	// Hold is set if the finalizer is missing. Nothing is done without it: compositions could not
	// be deleted in order.
	Hold bool
	// Before are changes that must be made before all other changes.
	Before []Change
	Delete []*enov1.Composition
	Create []*enov1.Composition
	After  []Change
	// Release is set if nothing is left of a Symphony that is being deleted.
	Release bool
	Status  enov1.SymphonyStatus
}

// A Change is a composition as it is and as it should be.
type Change struct{ From, To *enov1.Composition }

// Idle reports whether there is nothing to do, except for the status.
func (d *Decision) Idle() bool {
	return !d.Hold && !d.Release && len(d.Before)+len(d.Delete)+len(d.Create)+len(d.After) == 0
}

// Decide decides about a Symphony.
func Decide(v View, now time.Time) Decision {
	switch {
	case v.Symphony.DeletionTimestamp != nil:
		return end(v, now)
	case !slices.Contains(v.Symphony.Finalizers, enov1.Finalizer):
		return Decision{Hold: true, Status: *v.Symphony.Status.DeepCopy()}
	}
	s := read(&v.Symphony.Spec)
	if len(s.problems) > 0 {
		return Decision{Status: refused(v.Symphony, s.problems, now)}
	}
	p := match(v, s)
	retired, kept := p.retire()
	p.kept = kept
	d := Decision{Before: append(p.removals(), p.strip()...)}
	p.resolve(v.Symphony)
	if len(d.Before) == 0 {
		d.Delete = retired
		for i := range p.parts {
			p.parts[i].write(&d)
		}
	}
	d.Status = p.status(v.Symphony, now)

	return d
}

// end deletes all compositions. The label is set first: objects are then orphaned, also those of
// compositions that are being deleted already.
func end(v View, now time.Time) Decision {
	var d Decision
	for _, c := range v.Compositions {
		if c.Labels[enov1.LabelSymphonyDeleting] != "true" {
			to := c.DeepCopy()
			put(&to.Labels, enov1.LabelSymphonyDeleting, "true")
			d.Before = append(d.Before, Change{c, to})
		}
		if c.DeletionTimestamp == nil {
			d.Delete = append(d.Delete, c)
		}
	}
	d.Release = len(v.Compositions) == 0 && slices.Contains(v.Symphony.Finalizers, enov1.Finalizer)
	d.Status = ending(v, now)

	return d
}

// A plan is what becomes of the compositions of a Symphony.
type plan struct {
	// parts are in the order of their dependencies.
	parts []part
	// surplus are compositions that no variation has any more, and all but the
	// oldest that one has.
	surplus []*enov1.Composition
	// kept are the surplus ones that are deleted later.
	kept []*enov1.Composition
	// live are all that are not being deleted, with their variations.
	live []voice
}

// A part is a variation and its composition.
type part struct {
	variation *enov1.Variation
	// have is nil if there is none. One that is being deleted is ignored: waiting for its end could
	// take forever, if a dependent of this one blocks it.
	have *enov1.Composition
	// want is nil as long as something that it depends on has no composition.
	want *enov1.Composition
}

type voice struct {
	variation   *enov1.Variation
	composition *enov1.Composition
}

// match finds the composition of each variation. Of several the oldest stays:
// every manager that sees them must keep the same one, and its objects are there.
func match(v View, s score) plan {
	var p plan
	index := make(map[string]int, len(s.variations))
	for i, variation := range s.variations {
		index[nameOf(variation)] = i
		p.parts = append(p.parts, part{variation: variation})
	}
	all := slices.Clone(v.Compositions)
	slices.SortFunc(all, older)
	for _, c := range all {
		if c.DeletionTimestamp != nil {
			continue
		}
		i, ok := index[c.Spec.Synthesizer.Name]
		if !ok {
			p.surplus = append(p.surplus, c)

			continue
		}
		p.live = append(p.live, voice{s.variations[i], c})
		if p.parts[i].have == nil {
			p.parts[i].have = c
		} else {
			p.surplus = append(p.surplus, c)
		}
	}

	return p
}

// older compares by what never changes. Times are stored in seconds.
func older(a, b *enov1.Composition) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// removals are the labels and annotations that must be removed. They are removed before any is set,
// so that one that moves is never on two compositions.
func (p *plan) removals() []Change {
	var all []Change
	for _, l := range p.live {
		to := l.composition.DeepCopy()
		labels, annotations := remove(to.Labels, l.variation.Labels), remove(to.Annotations, l.variation.Annotations)
		if labels || annotations {
			all = append(all, Change{l.composition, to})
		}
	}

	return all
}

// remove removes what must be empty, and reports whether there was any.
func remove(have, want map[string]string) bool {
	before := len(have)
	for key, value := range want {
		if value == "" {
			delete(have, key)
		}
	}

	return len(have) < before
}

// resolve finds out what every composition should be.
func (p *plan) resolve(s *enov1.Symphony) {
	composition := make(map[string]string, len(p.parts))
	for i := range p.parts {
		t := &p.parts[i]
		if t.have != nil {
			composition[nameOf(t.variation)] = t.have.Name
		}
		// Its dependencies are in an earlier part, or this would not be an order.
		if on, ok := dependencies(t.variation, s.Namespace, composition); ok {
			t.want = wanted(s, t, on)
			if before := p.predecessors(); t.have == nil && before != "" {
				put(&t.want.Annotations, enov1.AnnotationSucceeds, before)
			}
		}
	}
}

// dependencies are the compositions that a variation names, unless there is one
// that has no name yet.
func dependencies(v *enov1.Variation, namespace string, composition map[string]string) ([]enov1.CompositionDependency, bool) {
	var all []enov1.CompositionDependency
	for _, d := range v.DependsOn {
		name, ok := composition[d.Synthesizer]
		if !ok {
			return nil, false
		}
		if one := (enov1.CompositionDependency{Name: name, Namespace: namespace}); !slices.Contains(all, one) {
			all = append(all, one)
		}
	}

	return all, true
}

// wanted is the composition of a variation.
func wanted(s *enov1.Symphony, t *part, on []enov1.CompositionDependency) *enov1.Composition {
	v := t.variation
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{
		Namespace:       s.Namespace,
		GenerateName:    nameOf(v) + "-",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, enov1.GroupVersion.WithKind(enov1.SymphonyKind))},
	}}
	if t.have != nil {
		c = t.have.DeepCopy()
	}
	for key, value := range v.Labels {
		if value != "" {
			put(&c.Labels, key, value)
		}
	}
	for key, value := range v.Annotations {
		if value != "" {
			put(&c.Annotations, key, value)
		}
	}
	c.Spec = enov1.CompositionSpec{
		Synthesizer:  *v.Synthesizer.DeepCopy(),
		Bindings:     merge(v.Bindings, s.Spec.Bindings, func(b enov1.Binding) string { return b.Key }),
		SynthesisEnv: merge(v.SynthesisEnv, s.Spec.SynthesisEnv, func(e enov1.EnvVar) string { return e.Name }),
		DependsOn:    on,

		ServiceAccountName: v.ServiceAccountName,
	}
	// An equivalent spec is not written: a new spec triggers a new synthesis.
	if t.have != nil && same(&t.have.Spec, &c.Spec, s.Namespace) {
		c.Spec = *t.have.Spec.DeepCopy()
	}

	return c
}

// merge joins two lists. Of what has the same key, the first counts.
func merge[T any](first, second []T, key func(T) string) []T {
	var all []T
	seen := map[string]bool{}
	for _, one := range slices.Concat(first, second) {
		if k := key(one); !seen[k] {
			seen[k] = true
			all = append(all, one)
		}
	}

	return all
}

// same reports whether two specs are equivalent in a namespace.
func same(a, b *enov1.CompositionSpec, namespace string) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, s := range []*enov1.CompositionSpec{a, b} {
		for i := range s.DependsOn {
			s.DependsOn[i].Namespace = cmp.Or(s.DependsOn[i].Namespace, namespace)
		}
	}

	return equality.Semantic.DeepEqual(a, b)
}

// write has a composition made or changed, if it can be and is not right.
func (t *part) write(d *Decision) {
	switch {
	case t.want == nil:
	case t.have == nil:
		d.Create = append(d.Create, t.want)
	case !equality.Semantic.DeepEqual(t.have, t.want):
		d.After = append(d.After, Change{t.have, t.want})
	}
}

// upToDate reports whether the spec of a composition matches its variation.
func (t *part) upToDate() bool {
	return t.have != nil && t.want != nil && equality.Semantic.DeepEqual(t.have.Spec, t.want.Spec)
}

func put(in *map[string]string, key, value string) {
	if *in == nil {
		*in = map[string]string{}
	}
	(*in)[key] = value
}
