package subnetpoolclaim

import (
	"context"
	"errors"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// An apiServer stores the objects of one SubnetPoolClaim by kind. The functions run when a
// request arrives, as another manager or the allocator would.
type apiServer struct {
	client.Client

	claim   *v1alpha1.SubnetPoolClaim // nil if there is none
	parent  *v1alpha1.SubnetPool      // nil if there is none
	blocks  map[string]*v1alpha1.SubnetClaim
	pools   map[string]*v1alpha1.SubnetPool
	subnets []v1alpha1.Subnet

	beforeCreate, beforeDelete func(*apiServer)
	version                    int
}

func newAPIServer() *apiServer {
	return &apiServer{blocks: map[string]*v1alpha1.SubnetClaim{}, pools: map[string]*v1alpha1.SubnetPool{}}
}

var errMissing = apierrors.NewNotFound(schema.GroupResource{}, "x")

func (s *apiServer) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch o := o.(type) {
	case *v1alpha1.SubnetPoolClaim:
		if s.claim != nil {
			s.claim.DeepCopyInto(o)

			return nil
		}
	case *v1alpha1.SubnetClaim:
		if b := s.blocks[key.Name]; b != nil {
			b.DeepCopyInto(o)

			return nil
		}
	case *v1alpha1.SubnetPool:
		p := s.pools[key.Name]
		if p == nil && s.parent != nil && s.parent.Name == key.Name {
			p = s.parent
		}
		if p != nil {
			p.DeepCopyInto(o)

			return nil
		}
	}

	return errMissing
}

func (s *apiServer) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	of := (&client.ListOptions{}).ApplyOptions(options)
	switch list := list.(type) {
	case *v1alpha1.SubnetClaimList:
		for _, b := range s.blocks {
			if isListed(of, b) {
				list.Items = append(list.Items, *b.DeepCopy())
			}
		}
	case *v1alpha1.SubnetPoolList:
		for _, p := range s.pools {
			list.Items = append(list.Items, *p.DeepCopy())
		}
	case *v1alpha1.SubnetList:
		list.Items = s.subnets
	}

	return nil
}

// isListed reports whether a claim has the values of a field selector.
func isListed(of *client.ListOptions, b *v1alpha1.SubnetClaim) bool {
	waits := ""
	if b.Status.Phase != v1alpha1.ClaimBound {
		waits = b.Spec.PoolRef
	}

	return of.FieldSelector == nil || of.FieldSelector.Matches(fields.Set{madeForIndexKey: madeFor(b), kube.ClaimWaitingIndexKey: waits})
}

func (s *apiServer) write(o client.Object) {
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
	switch o := o.(type) {
	case *v1alpha1.SubnetClaim:
		s.blocks[o.Name] = o.DeepCopy()
	case *v1alpha1.SubnetPool:
		s.pools[o.Name] = o.DeepCopy()
	}
}

func (s *apiServer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	if s.beforeCreate != nil {
		s.beforeCreate(s)
	}
	o.SetUID("made")
	s.write(o)

	return nil
}

func (s *apiServer) Delete(_ context.Context, o client.Object, options ...client.DeleteOption) error {
	if s.beforeDelete != nil {
		s.beforeDelete(s)
	}
	conditions := (&client.DeleteOptions{}).ApplyOptions(options).Preconditions
	var stored client.Object
	if b := s.blocks[o.GetName()]; b != nil {
		stored = b
	}
	if _, isPool := o.(*v1alpha1.SubnetPool); isPool && s.pools[o.GetName()] != nil {
		stored = s.pools[o.GetName()]
	}
	switch {
	case stored == nil:
		return errMissing
	case conditions == nil || *conditions.UID != stored.GetUID() || *conditions.ResourceVersion != stored.GetResourceVersion():
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("it has changed"))
	}
	stored.SetDeletionTimestamp(new(metav1.Now()))
	s.write(stored)

	return nil
}

func (s *apiServer) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	if len(o.GetFinalizers()) == 0 && o.GetDeletionTimestamp() != nil {
		delete(s.blocks, o.GetName())
	}

	return nil
}

// Two managers serve one SubnetPoolClaim. This one reads it and creates an object for it;
// in between, the other one finds nothing to delete and removes the finalizer of the
// SubnetPoolClaim, which disappears. The object must not stay.
func TestCreateDoesNotOutliveTheClaim(t *testing.T) {
	claim := func(uid types.UID, length int32, deleting bool) *v1alpha1.SubnetPoolClaim {
		c := poolClaim("x")
		c.UID, c.Finalizers, c.Spec.DesiredBlockSize = uid, []string{v1alpha1.Finalizer}, length
		if deleting {
			c.DeletionTimestamp = new(metav1.Now())
		}

		return c
	}
	becomes := func(c *v1alpha1.SubnetPoolClaim) func(*apiServer) { return func(s *apiServer) { s.claim = c } }
	bound := 0
	cases := map[string]struct {
		reason       string
		beforeCreate func(*apiServer)
		beforeDelete func(*apiServer)
		kept         bool
	}{
		"Exists":   {"The claim needs it.", nil, nil, true},
		"Released": {"The other manager has released the claim.", becomes(nil), nil, false},
		"Deleting": {"The other manager has listed and is about to remove the finalizer.", becomes(claim("new", 20, true)), nil, false},
		"Again":    {"A new claim of the name takes it.", becomes(claim("again", 20, false)), nil, true},
		"Other":    {"A new claim of the name needs another block.", becomes(claim("again", 22, false)), nil, false},
		"Bound": {"The allocator has bound it in between.", becomes(nil), func(s *apiServer) {
			if bound++; bound == 1 {
				s.blocks["x"].Status.Phase = v1alpha1.ClaimBound
				s.write(s.blocks["x"])
			}
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer()
			server.claim, server.beforeCreate, server.beforeDelete = claim("new", 20, false), tc.beforeCreate, tc.beforeDelete
			r := &Reconciler{client: server, reader: server}
			cached := server.claim.DeepCopy()
			_, err := r.block(t.Context(), cached)
			if (err == nil) != tc.kept {
				t.Errorf("%s\nthe error is %v", tc.reason, err)
			}
			if block := server.blocks["x"]; block == nil || (block.DeletionTimestamp == nil) != tc.kept {
				t.Errorf("%s\nthe SubnetClaim is %+v", tc.reason, block)
			}
		})
	}
}

// The same with the pool.
func TestPoolDoesNotOutliveTheClaim(t *testing.T) {
	server := newAPIServer()
	server.parent = &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "parent", UID: "p"}}
	server.claim = poolClaim("x")
	server.claim.Finalizers = []string{v1alpha1.Finalizer}
	server.beforeCreate = func(s *apiServer) { s.claim = nil }
	r := &Reconciler{client: server, reader: server}
	_, err := r.pool(t.Context(), server.claim.DeepCopy(), &v1alpha1.SubnetClaim{Status: v1alpha1.SubnetClaimStatus{AllocatedCIDR: "10.0.0.0/20"}})
	if pool := server.pools["x"]; err == nil || pool == nil || pool.DeletionTimestamp == nil {
		t.Errorf("the pool of a claim that is gone is %+v (%v)", pool, err)
	}
}

// A splitClient reads from a cache and writes to the API server.
type splitClient struct {
	*apiServer

	live *apiServer
}

func (c splitClient) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	return c.live.Delete(ctx, o, options...)
}

func (c splitClient) Patch(ctx context.Context, o client.Object, p client.Patch, options ...client.PatchOption) error {
	return c.live.Patch(ctx, o, p, options...)
}
