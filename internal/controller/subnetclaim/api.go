package subnetclaim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// An api is all that the allocator asks of the API server and of its cache.
type api interface {
	// Pool reads a pool from the cache. It is nil if there is none.
	Pool(ctx context.Context, key types.NamespacedName) (*v1alpha1.SubnetPool, error)
	// Claims lists the claims of a pool that are not Bound, from the cache. The
	// caller must not change them.
	Claims(ctx context.Context, pool types.NamespacedName) ([]v1alpha1.SubnetClaim, error)
	// Subnet reads a Subnet from the API server.
	Subnet(ctx context.Context, key types.NamespacedName) (*v1alpha1.Subnet, error)
	// Create creates a Subnet.
	Create(ctx context.Context, s *v1alpha1.Subnet) error
	// WriteStatus writes the status of a claim under its resourceVersion.
	WriteStatus(ctx context.Context, c *v1alpha1.SubnetClaim) error
	// Warn emits an event about a claim.
	Warn(c *v1alpha1.SubnetClaim, reason, message string)
}

// A server is the api of a running manager.
type server struct {
	cached   client.Client
	live     client.Reader
	recorder events.EventRecorder
}

func (s *server) Pool(ctx context.Context, key types.NamespacedName) (*v1alpha1.SubnetPool, error) {
	pool := &v1alpha1.SubnetPool{}
	err := s.cached.Get(ctx, key, pool)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // as the interface says
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read pool %s: %w", key, err)
	}

	return pool, nil
}

func (s *server) Claims(ctx context.Context, pool types.NamespacedName) ([]v1alpha1.SubnetClaim, error) {
	list := &v1alpha1.SubnetClaimList{}
	fields := client.MatchingFields{kube.ClaimWaitingIndexKey: pool.Name}
	if err := s.cached.List(ctx, list, client.InNamespace(pool.Namespace), fields, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list SubnetClaims: %w", err)
	}

	return list.Items, nil
}

func (s *server) Subnet(ctx context.Context, key types.NamespacedName) (*v1alpha1.Subnet, error) {
	subnet := &v1alpha1.Subnet{}

	return subnet, s.live.Get(ctx, key, subnet)
}

func (s *server) Create(ctx context.Context, subnet *v1alpha1.Subnet) error {
	return s.cached.Create(ctx, subnet)
}

func (s *server) WriteStatus(ctx context.Context, c *v1alpha1.SubnetClaim) error {
	return s.cached.Status().Update(ctx, c)
}

func (s *server) Warn(c *v1alpha1.SubnetClaim, reason, message string) {
	s.recorder.Eventf(c, nil, corev1.EventTypeWarning, reason, "Allocate", "%s", message)
}
