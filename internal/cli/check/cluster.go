package check

import (
	"context"
	"slices"
	"time"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/findings"
)

// settle is how long a cluster gets to finish what it is doing, before what
// seems wrong is looked at again.
var settle = time.Second

// SetDelay sets how long to wait before what seems wrong is looked at again. Tests do without.
func SetDelay(d time.Duration) { settle = d }

// SurveyCluster returns what there is in a cluster and what is wrong with it.
//
// The lists are not of one moment: a claim may be served, and a pool counted,
// between two of them. So what seems wrong is looked at once more, and only
// what is still wrong, to the letter, is reported.
func SurveyCluster(ctx context.Context, list source.Lister, namespace string) (*findings.Survey, []show.Finding, error) {
	s, err := ListEstate(ctx, list, namespace)
	if err != nil {
		return nil, nil, err
	}

	findings := s.Inspect()
	if len(findings) == 0 {
		return s, nil, nil
	}

	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}

	if s, err = ListEstate(ctx, list, namespace); err != nil {
		return nil, nil, err
	}

	before := make(map[show.Finding]bool, len(findings))
	for _, f := range findings {
		before[f] = true
	}

	return s, slices.DeleteFunc(s.Inspect(), func(f show.Finding) bool { return !before[f] }), nil
}

// ListEstate lists pools, Subnets and claims.
func ListEstate(ctx context.Context, list source.Lister, namespace string) (*findings.Survey, error) {
	s := &findings.Survey{}

	for _, k := range findings.EstateKinds {
		objects, err := list(ctx, source.Query{Resource: v1alpha1.GroupVersion.WithResource(k.Resource), Namespace: namespace})
		if err != nil {
			return nil, err
		}

		for _, obj := range objects {
			s.Add(findings.EstateKind(k.Name), obj)
		}
	}

	return s, nil
}
