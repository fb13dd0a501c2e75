package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show/compositions"
)

// deliveries are objects of the delivery API, as far as they are asked for.
type deliveries struct {
	*compositions.Objects

	list source.Lister
}

// A deliveryScope is where a command looks for Compositions.
type deliveryScope struct{ source.Scope }

func (s *deliveryScope) newDeliveries() (*deliveries, error) {
	list, err := s.Connect(s.Flags, s.ErrOut)
	if err != nil {
		return nil, err
	}

	return &deliveries{Objects: compositions.NewObjects(), list: list}, nil
}

// deliveries reads everything that there is to know of compositions: of all of
// a namespace, or of those with a name.
func (s *deliveryScope) deliveries(ctx context.Context, namespace string, names []string) (*deliveries, error) {
	d, err := s.newDeliveries()
	if err != nil {
		return nil, err
	}

	if len(names) == 0 {
		err = d.readAll(ctx, namespace)
	} else {
		err = d.readNamed(ctx, namespace, names)
	}

	return d, err
}

func (d *deliveries) readNamed(ctx context.Context, namespace string, names []string) error {
	for _, name := range names {
		if err := d.read(ctx, source.Query{Resource: source.CompositionResource, Namespace: namespace, Name: name}); err != nil {
			return err
		}
	}

	for _, c := range d.Sorted() {
		if err := d.readSlices(ctx, c, c.Status.InFlightSynthesis, c.Status.CurrentSynthesis); err != nil {
			return err
		}

		if owner := compositions.SymphonyOf(c); owner != "" {
			if err := d.read(ctx, source.Query{Resource: source.SymphonyResource, Namespace: c.Namespace, Name: owner}); err != nil {
				return err
			}
		}
	}

	return nil
}

// readAll reads compositions before the slices that they name: one that is new
// by then has slices that are not asked for, and not the other way round.
func (d *deliveries) readAll(ctx context.Context, namespace string) error {
	for _, resource := range []string{source.CompositionResource.Resource, source.SliceResource.Resource, source.SymphonyResource.Resource} {
		if err := d.read(ctx, source.Query{Resource: enov1.GroupVersion.WithResource(resource), Namespace: namespace}); err != nil {
			return err
		}
	}

	return nil
}

// readSlices reads the manifests of syntheses, which may be nil. Slices are
// large, so only those are asked for.
func (d *deliveries) readSlices(ctx context.Context, c *enov1.Composition, syntheses ...*enov1.Synthesis) error {
	for _, s := range syntheses {
		if s == nil {
			continue
		}

		for _, ref := range s.ResourceSlices {
			key := types.NamespacedName{Namespace: c.Namespace, Name: compositions.RefName(ref)}
			if d.Slices[key] != nil || key.Name == "" {
				continue
			}

			if err := d.read(ctx, source.Query{Resource: source.SliceResource, Namespace: c.Namespace, Name: key.Name}); err != nil {
				return err
			}
		}
	}

	return nil
}

// read takes up what a query finds. A cluster may do without symphonies.
func (d *deliveries) read(ctx context.Context, q source.Query) error {
	objects, err := d.list(ctx, q)

	switch {
	case errors.Is(err, source.ErrNotInstalled) && q.Resource == source.SymphonyResource:
		return nil
	case errors.Is(err, source.ErrNotInstalled):
		return fmt.Errorf("the Composition API (%s) is %w", enov1.GroupVersion, err)
	case err != nil:
		return err
	}

	for _, obj := range objects {
		if err := d.add(obj); err != nil {
			return fmt.Errorf("cannot use %s: %w", identity.RefOf(obj), err)
		}
	}

	return nil
}

func (d *deliveries) add(obj map[string]any) error {
	ref := identity.RefOf(obj)

	switch ref.Kind {
	case enov1.CompositionKind:
		return source.Keep(d.Compositions, ref, obj)
	case enov1.ResourceSliceKind:
		return source.Keep(d.Slices, ref, obj)
	case enov1.SymphonyKind:
		return source.Keep(d.Symphonies, ref, obj)
	default:
		return nil
	}
}

// oneComposition is the composition of a name, for commands that are about one.
func (s *deliveryScope) oneComposition(ctx context.Context, name string) (*deliveries, *enov1.Composition, error) {
	name = compositionName(name)
	namespace, err := s.Namespace()
	if err != nil {
		return nil, nil, command.Blind("%w", err)
	}

	d, err := s.newDeliveries()
	if err != nil {
		return nil, nil, command.Blind("%w", err)
	}

	if err := d.read(ctx, source.Query{Resource: source.CompositionResource, Namespace: namespace, Name: name}); err != nil {
		return nil, nil, command.Blind("%w", err)
	}

	all := d.Sorted()

	switch {
	case len(all) == 0:
		return nil, nil, s.unknownComposition([]string{name}, namespace)
	case len(all) > 1:
		namespaces := make([]string, len(all))
		for i, c := range all {
			namespaces[i] = render.Clean(c.Namespace)
		}

		return nil, nil, command.Blind("composition %q is in several namespaces: choose one of %s with -n", name, strings.Join(namespaces, ", "))
	default:
		return d, all[0], nil
	}
}

func (s *deliveryScope) unknownComposition(names []string, namespace string) error {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}

	return command.NotFound("composition %s was not found in %s: %s", strings.Join(quoted, ", "), s.Place(namespace), s.Advice())
}
