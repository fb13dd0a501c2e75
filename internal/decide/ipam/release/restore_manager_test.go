package release_test

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/engine/ledger"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
	"github.com/arbor-control/arbor/internal/decide/ipam/release"
)

// This file has what the controllers do around the decisions that are walked. Each
// method names the function of the product that it mirrors, and leaves out what cannot
// happen in a restore: the deletion of pools and pool claims, several namespaces, and the
// status of claims that wait, which decides nothing.

// rules are clauses that a walk leaves out, to see that they are needed.
type rules struct {
	noRecord             bool // claims have no record
	recordedInAnyOrder   bool // recorded claims are not served first
	recordedIgnored      bool // a restore ends while recorded claims wait
	noEpoch              bool // a restored pool is like any other
	epochReplaced        bool // the pool guard replaces the UID of the backup
	adoptByUID           bool // a claim takes only a Subnet with its UID
	adoptByCluster       bool // a claim takes any Subnet of its clusterID
	releaseAnyVersion    bool // a release ignores the resourceVersion
	anyTime              bool // the time in claimRef is ignored
	anyPool              bool // the UID of the pool in claimRef is ignored
	statusOfBackup       bool // the status of a backup counts
	owners               bool // Subnets have an owner reference to their claim, and keep it
	childInTheWay        bool // a restored child pool keeps its block from its own claim
	blockUnrecorded      bool // the claim of a pool claim does not ask for the block of the pool
	childNotRestoring    bool // a pool that is made during a restore allocates at once
	poolClaimByUID       bool // a pool claim finds its block by UID
	poolOfBackup         bool // the UID of the pool in spec.backs counts, although that pool does not exist
	claimStatusOfBackup  bool // the status of a claim of a backup counts
	blockUnrecordedLater bool // nor does it ask for it later
	coolsForOwner        bool // a freed block cools down for the claim that had it, too
}

// restoring is [pool.Restoring].
func (s *server) restoring(p *v1alpha1.SubnetPool) bool {
	return ipamrules.IsRestoring(p) && !s.rules.noEpoch
}

// guard mirrors subnetpool.Guard.Reconcile: protect, back, endRestore.
func (s *server) guard(name string) {
	p := s.pool(name)
	if p == nil {
		return
	}
	if s.protect(p.DeepCopy()) {
		return
	}
	if p.ParentName() != "" {
		s.back(p)
	}
	s.endRestore(p)
}

// protect mirrors subnetpool.Guard.protect.
func (s *server) protect(p *v1alpha1.SubnetPool) bool {
	before := len(p.Finalizers)
	if before == 0 {
		p.Finalizers = []string{v1alpha1.Finalizer}
	}
	recorded := p.Annotations[v1alpha1.PoolUIDAnnotation]
	if recorded == "" || s.rules.epochReplaced {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.PoolUIDAnnotation, string(p.UID))
	}
	if before > 0 && recorded == p.Annotations[v1alpha1.PoolUIDAnnotation] {
		return false
	}
	s.write(p)

	return true
}

// back mirrors subnetpool.Guard.back, retry, createIn and bind.
func (s *server) back(p *v1alpha1.SubnetPool) {
	wants, _ := netip.ParsePrefix(ipamrules.BackedRange(p))
	var subnets []v1alpha1.Subnet
	for _, o := range s.backing(p) {
		subnets = append(subnets, *o)
	}
	switch o, step := ipamrules.DecideBacking(p, wants, subnets); step {
	case ipamrules.BindBlock:
		if uid := o.Status.PoolUID; uid != "" && uid != p.UID && s.exists(uid) {
			return
		}
		next := o.DeepCopy()
		next.Finalizers, next.Status.PoolUID = []string{v1alpha1.Finalizer}, p.UID
		s.write(next)
	case ipamrules.RetryBlock:
		if s.hasRoom(p, wants) && !slices.ContainsFunc(s.subnets(p.ParentName()), func(x *v1alpha1.Subnet) bool { return ipamrules.TakesBlock(p.ParentName(), wants, x) }) {
			s.remove(o)
		}
	case ipamrules.CreateBlock:
		if s.hasRoom(p, wants) {
			s.create(ipamrules.BackingSubnet(p))
		}
	case ipamrules.KeepBlock:
	}
}

// hasRoom mirrors subnetpool.Guard.hasRoom.
func (s *server) hasRoom(p *v1alpha1.SubnetPool, wants netip.Prefix) bool {
	parent := s.pool(p.ParentName())

	return parent != nil && contains(parent.Open(), wants) && contains(parent.Spec.CIDR, wants)
}

// backing mirrors kube.BackingOf.
func (s *server) backing(p *v1alpha1.SubnetPool) []*v1alpha1.Subnet {
	return slices.DeleteFunc(s.subnets(p.ParentName()), func(o *v1alpha1.Subnet) bool {
		named := o.Spec.Backs != nil && o.Spec.Backs.Name == p.Name

		return !named && (o.Spec.Backs != nil || o.Status.PoolUID != p.UID)
	})
}

func contains(outer string, inner netip.Prefix) bool {
	prefix, err := netip.ParsePrefix(outer)

	return err == nil && prefix.Bits() <= inner.Bits() && prefix.Contains(inner.Addr())
}

func protected(o *v1alpha1.Subnet) bool { return slices.Contains(o.Finalizers, v1alpha1.Finalizer) }

// endRestore mirrors subnetpool.Guard.endRestore. The grace period is over when
// everything of the pool has arrived.
func (s *server) endRestore(p *v1alpha1.SubnetPool) {
	if !s.restoring(p) || !s.quiet {
		return
	}
	for _, c := range s.waiting(p.Name) {
		if _, recorded := ipamrules.RecordedBlock(c); recorded && !s.rules.recordedIgnored {
			return
		}
	}
	s.restored(p)
}

// endByUser mirrors the command arbor pools restored.
func (s *server) endByUser(name string) {
	if p := s.pool(name); p != nil && s.restoring(p) && s.complete && s.ended {
		s.restored(p)
	}
}

func (s *server) restored(p *v1alpha1.SubnetPool) {
	next := p.DeepCopy()
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.PoolUIDAnnotation, string(p.UID))
	s.write(next)
}

// waiting lists what kube.ClaimWaitingIndexKey finds.
func (s *server) waiting(pool string) []*v1alpha1.SubnetClaim {
	return slices.DeleteFunc(s.claims(pool), func(c *v1alpha1.SubnetClaim) bool { return c.Status.Phase == v1alpha1.ClaimBound })
}

// poolStatus mirrors poolstatus.Reconciler.judge, gatherFacts and write. No Subnet here
// is Allocated before its pool is open, so there are no strays.
func (s *server) poolStatus(name string) {
	p := s.pool(name)
	if p == nil || p.Spec.CIDR == p.Open() {
		return
	}
	facts := ipamrules.PoolFacts{Outside: ipamrules.SubnetListing{Live: true}}
	prefix, _ := netip.ParsePrefix(p.Spec.CIDR)
	for _, o := range s.subnets(name) {
		if block, err := netip.ParsePrefix(o.Spec.CIDR); err == nil && o.Status.Phase != v1alpha1.SubnetFailed && !contains(p.Spec.CIDR, block) {
			facts.Outside.Example = o.Name
		}
	}
	if parent := s.pool(p.ParentName()); parent != nil {
		facts.HasParent = true
		facts.Backing = s.backingOf(p, prefix)
	}
	v := ipamrules.DecidePool(p, facts)
	if v.Action == ipamrules.Keep {
		return
	}
	next := p.DeepCopy()
	next.Status = ipamrules.DecidedStatus(p, v, metav1.NewTime(s.now))
	if v.Action != ipamrules.Clear || next.Status.Lost != p.Status.Lost {
		s.write(next)
	}
}

// backingOf mirrors poolstatus.gatherer.backing.
func (s *server) backingOf(p *v1alpha1.SubnetPool, prefix netip.Prefix) ipamrules.Backing {
	var b ipamrules.Backing
	for _, o := range s.backing(p) {
		block, _ := netip.ParsePrefix(o.Spec.CIDR)
		switch {
		case o.Status.Phase == v1alpha1.SubnetFailed:
			b.Reason, b.Message = ipamrules.ReasonOutsideBlock, o.Name
		case !allocated(o) || o.DeletionTimestamp != nil || !protected(o) || o.Status.PoolUID != p.UID:
			return ipamrules.Backing{}
		case contains(o.Spec.CIDR, prefix):
			return ipamrules.Backing{Prefix: block.Masked()}
		default:
			b.Prefix = block.Masked()
		}
	}

	return b
}

// allocated reports whether a Subnet has a verdict of its own.
func allocated(o *v1alpha1.Subnet) bool {
	return o.Status.Phase == v1alpha1.SubnetAllocated && (o.Status.UID == "" || o.Status.UID == o.UID)
}

// reconcileSubnet mirrors subnet.Reconciler.Reconcile: cool, stripOwners, resetStatus,
// judge. The release is a step of its own.
func (s *server) reconcileSubnet(at int) {
	o, ok := get[*v1alpha1.Subnet](s, at)
	if !ok {
		return
	}
	next := o.DeepCopy()
	switch {
	case o.DeletionTimestamp != nil:
		if release.IsBacking(o) && o.Status.Phase != v1alpha1.SubnetFailed || s.cooling(o) {
			return
		}
		next.Finalizers = nil
		s.remove(next)

		return
	case len(o.OwnerReferences) > 0 && !s.rules.owners:
		next.OwnerReferences = nil
	case foreignStatus(o):
		next.Status = v1alpha1.SubnetStatus{}
	case !undecided(o) || !s.judge(next):
		return
	}
	s.write(next)
}

// cooling reports whether the block of a Subnet that is being deleted stays unused. No time
// passes, so it does except for the claim that can be given no other.
func (s *server) cooling(o *v1alpha1.Subnet) bool { return release.Cooling(s.facts(o)) > 0 }

// foreignStatus reports whether subnet.Reconciler.resetStatus has something to do.
func foreignStatus(o *v1alpha1.Subnet) bool { return o.Status.UID != "" && o.Status.UID != o.UID }

// judge mirrors subnet.Reconciler.judge, apply and hold.
func (s *server) judge(o *v1alpha1.Subnet) bool {
	var of *ipamrules.PoolRanges
	if p := s.pool(o.Spec.PoolRef); p != nil {
		of = ipamrules.PoolRangesOf(p)
	}
	v := ipamrules.DecideSubnet(blockOf(o), of, s.blocks(o.Spec.PoolRef))
	if v.Phase == v1alpha1.SubnetPending {
		return false
	}
	o.Status.Phase, o.Status.UID = v.Phase, o.UID
	f := s.facts(o)
	o.Status.ClaimUID, o.Status.PoolUID = release.ClaimHolding(f.Claim, o), release.PoolHolding(f.Child, o)
	if o.Spec.Backs != nil && s.rules.poolOfBackup {
		o.Status.PoolUID = o.Spec.Backs.UID
	}

	return true
}

func (s *server) blocks(pool string) iter.Seq[ipamrules.SubnetFacts] {
	return func(yield func(ipamrules.SubnetFacts) bool) {
		for _, o := range s.subnets(pool) {
			if !yield(blockOf(o)) {
				return
			}
		}
	}
}

func blockOf(o *v1alpha1.Subnet) ipamrules.SubnetFacts {
	prefix, _ := netip.ParsePrefix(o.Spec.CIDR)

	return ipamrules.SubnetFacts{
		Name: o.Name, Prefix: prefix.Masked(), Phase: o.Status.Phase, Version: o.ResourceVersion,
		Cluster: o.Spec.ClusterID, Claimed: o.Spec.ClaimRef != nil && o.DeletionTimestamp == nil,
	}
}

// facts are what the decisions of the product depend on. The grace period of a Subnet is
// over when everything has arrived.
func (s *server) facts(o *v1alpha1.Subnet) release.Facts {
	f := release.Facts{Subnet: o, Pool: s.pool(o.Spec.PoolRef), Child: s.pool(release.ChildName(o)), Grace: time.Hour, Now: s.now}
	if s.complete {
		f.Waited = f.Grace
	}
	if o.Spec.ClaimRef != nil {
		f.Claim, f.ClaimDeleted = s.claim(o.Spec.ClaimRef.Name), s.sawDeletion(o.Spec.ClaimRef)
	}
	i := slices.IndexFunc(s.subnets(lab), func(in *v1alpha1.Subnet) bool { return in.Status.Phase != v1alpha1.SubnetFailed })
	if i >= 0 && release.ChildName(o) == lab {
		f.Inside = s.subnets(lab)[i].Name
	}

	return s.broken(f)
}

// broken changes facts so that a rule decides as if it did not have a clause.
func (s *server) broken(f release.Facts) release.Facts {
	if f.Pool != nil && s.rules.noEpoch {
		f.Pool = f.Pool.DeepCopy()
		delete(f.Pool.Annotations, v1alpha1.PoolUIDAnnotation)
	}
	if f.Subnet.Spec.ClaimRef == nil {
		return f
	}
	f.Subnet = f.Subnet.DeepCopy()
	if s.rules.anyTime {
		f.Subnet.Spec.ClaimRef.Time = &f.Subnet.CreationTimestamp
	}
	if s.rules.anyPool && f.Pool != nil {
		f.Subnet.Spec.ClaimRef.PoolUID = f.Pool.UID
	}
	if s.rules.coolsForOwner && f.Subnet.DeletionTimestamp != nil {
		f.Claim = nil
	}

	return f
}

// releasable reports whether subnet.Reconciler.release or subnetpool.Releaser.Reconcile
// deletes a Subnet. The first is reached only if stripOwners and resetStatus have nothing to
// do.
func (s *server) releasable(at int) bool {
	o, ok := get[*v1alpha1.Subnet](s, at)
	if !ok || o.DeletionTimestamp != nil {
		return false
	}
	f := s.facts(o)
	if release.IsBacking(o) && release.Backing(f).Action == release.Release {
		return true
	}
	busy := len(o.OwnerReferences) > 0 && !s.rules.owners

	return !busy && release.Claimed(f).Action == release.Release
}

// sawDeletion reports whether the manager has seen that the claim of a Subnet was deleted.
func (s *server) sawDeletion(ref *v1alpha1.ClaimReference) bool {
	if ref.UID == types.UID(ref.Name+beforeSuffix) {
		return s.saw
	}

	return s.deleted>>s.store.slots["claim/"+ref.Name]&1 == 1 && ref.UID == types.UID(ref.Name+restoredSuffix)
}

// releaseBacking mirrors subnetpool.Releaser.Reconcile for a Subnet that is being deleted.
func (s *server) releaseBacking(at int) {
	o, ok := get[*v1alpha1.Subnet](s, at)
	if !ok || o.DeletionTimestamp == nil || !release.IsBacking(o) || !protected(o) || release.Backing(s.facts(o)).Action != release.Release {
		return
	}
	next := o.DeepCopy()
	next.Finalizers = nil
	s.remove(next)
}

// allocate mirrors subnetclaim.Allocator.Reconcile for a pool: claims, unavailable and
// choose. Only the Subnet for one claim is created: the requests for the other choices
// of the round may take longer. It returns why that claim has no block.
func (s *server) allocate(c *v1alpha1.SubnetClaim) string {
	p := s.pool(c.Spec.PoolRef)
	switch {
	case p == nil:
		return ipamrules.ReasonPoolNotFound
	case p.Open() == "":
		return ipamrules.ReasonPoolNotReady
	}
	book := s.ledger(p)
	for _, other := range s.inOrder(p.Name) {
		if book.Serves(string(other.UID)) {
			continue
		}
		block, reason := s.reserve(book, p, other)
		if other.Name != c.Name {
			continue
		}
		if reason == "" {
			s.take(c, p, block)
		}

		return reason
	}

	return ""
}

// inOrder mirrors subnetclaim.Allocator.claims.
func (s *server) inOrder(pool string) []*v1alpha1.SubnetClaim {
	claims := s.waiting(pool)
	rank := func(c *v1alpha1.SubnetClaim) int {
		_, recorded := ipamrules.RecordedBlock(c)
		_, exact := ipamrules.ExactBlock(c)
		switch {
		case s.rules.recordedInAnyOrder:
		case recorded:
			return 0
		case exact:
			return 1
		}

		return 2
	}
	slices.SortFunc(claims, func(x, y *v1alpha1.SubnetClaim) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(x.Name, y.Name))
	})

	return claims
}

// ledger mirrors ipamcache.Feed.Recount: what the allocator knows when all events have come.
func (s *server) ledger(p *v1alpha1.SubnetPool) *ledger.Pool {
	book := ledger.New()
	prefix, open := poolblocks.RangeOf(p)
	book.SetRange(prefix)
	book.SetOpen(open)
	for _, o := range s.subnets(p.Name) {
		if b, ok := poolblocks.BlockOf(o); ok {
			book.Put(b)
		}
	}
	if child := s.pool(lab); child != nil && child.ParentName() == p.Name {
		if b, ok := poolblocks.DelegationOf(child); ok {
			book.Put(b)
		}
	}

	return book
}

// reserve mirrors subnetclaim.round.reserve and why.
func (s *server) reserve(book *ledger.Pool, p *v1alpha1.SubnetPool, c *v1alpha1.SubnetClaim) (netip.Prefix, string) {
	prefix, _ := poolblocks.RangeOf(p)
	wish, refusal := ipamrules.ReadClaim(c, p, prefix)
	if refusal != nil {
		return netip.Prefix{}, refusal.Reason
	}
	if s.restoring(p) && !wish.Recorded {
		return netip.Prefix{}, ipamrules.ReasonPoolRestoring
	}
	r := ledger.Request{
		Claim: string(c.UID), Owner: c.Spec.ClusterID, Backs: ipamrules.ChildPoolOf(c),
		Exact: wish.Exact, Length: wish.Length, Strategy: ipamrules.AllocationStrategy(p.Spec.Strategy),
	}
	if s.rules.childInTheWay {
		r.Backs = ""
	}
	block, err := book.Reserve(r, s.now)
	switch {
	case err == nil:
		return block, ""
	case errors.As(err, new(*ledger.OwnerHasBlockError)):
		return block, ipamrules.ReasonClusterIDInUse
	case errors.As(err, new(*cidr.Exhausted)):
		return block, ipamrules.ReasonExhausted
	case wish.Recorded:
		return block, ipamrules.ReasonRecordTaken
	}

	return block, ipamrules.ReasonTaken
}

// take mirrors subnetclaim.round.create and resolve.
func (s *server) take(c *v1alpha1.SubnetClaim, p *v1alpha1.SubnetPool, block netip.Prefix) {
	for _, name := range ipamrules.SubnetNames(p.Name, block, c.UID) {
		o := ipamrules.NewSubnet(c, p, block, name, s.now)
		if s.rules.owners {
			o.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.SubnetClaimKind, Name: c.Name, UID: c.UID}}
		}
		there, ok := s.create(o).(*v1alpha1.Subnet)
		if !ok || ipamrules.TakesBlock(p.Name, block, there) {
			return
		}
	}
}

// bind mirrors subnetclaim.Binder.Reconcile, resetStatus and checkBound. Each write ends
// it.
func (s *server) bind(name string) {
	c := s.claim(name)
	if c == nil || s.resetStatus(c) {
		return
	}
	of := slices.DeleteFunc(s.subnets(c.Spec.PoolRef), func(o *v1alpha1.Subnet) bool {
		named := o.Spec.ClaimRef != nil && (o.Spec.ClaimRef.Name == c.Name || s.rules.adoptByCluster)

		return o.DeletionTimestamp != nil || !named || o.Spec.ClusterID != c.Spec.ClusterID
	})
	o, wrote := s.adopt(c, of)
	next := c.DeepCopy()
	switch {
	case wrote:
	case o == nil && c.Status.Phase != v1alpha1.ClaimBound:
		s.clear(of)
	case o == nil: // SubnetLost
	case c.Status.Phase != v1alpha1.ClaimBound || c.Status.SubnetRef != o.Name:
		if c.Status.Phase != v1alpha1.ClaimBound {
			next.Status.Phase, next.Status.UID, next.Status.AllocatedCIDR = v1alpha1.ClaimBound, c.UID, o.Spec.CIDR
		}
		next.Status.SubnetRef = o.Name
		s.write(next)
	case c.Annotations[v1alpha1.BlockAnnotation] != ipamrules.ClaimRecord(c) && !s.rules.noRecord: // subnetclaim.record
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.BlockAnnotation, ipamrules.ClaimRecord(c))
		s.write(next)
	}
}

// resetStatus mirrors subnetclaim.Binder.resetStatus.
func (s *server) resetStatus(c *v1alpha1.SubnetClaim) bool {
	if c.Status.UID == "" || c.Status.UID == c.UID || s.rules.claimStatusOfBackup {
		return false
	}
	next := c.DeepCopy()
	if _, recorded := ipamrules.RecordedBlock(c); !recorded && c.Status.Phase == v1alpha1.ClaimBound {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.BlockAnnotation, ipamrules.ClaimRecord(c))
	} else {
		next.Status = v1alpha1.SubnetClaimStatus{}
	}
	s.write(next)

	return true
}

// adopt mirrors subnetclaim.Binder.adoptOne.
func (s *server) adopt(c *v1alpha1.SubnetClaim, of []*v1alpha1.Subnet) (*v1alpha1.Subnet, bool) {
	i := slices.IndexFunc(of, func(o *v1alpha1.Subnet) bool {
		if s.rules.adoptByCluster {
			o = o.DeepCopy()
			o.Spec.ClaimRef.Name = c.Name
		}

		return ipamrules.ClaimAdopts(c, o) && (!s.rules.adoptByUID || o.Spec.ClaimRef.UID == c.UID)
	})
	if i < 0 {
		return nil, false
	}
	if of[i].Status.UID == of[i].UID && of[i].Status.ClaimUID == c.UID {
		return of[i], false
	}
	next := of[i].DeepCopy()
	next.Status.UID, next.Status.ClaimUID = next.UID, c.UID
	s.write(next)

	return next, true
}

// clear mirrors subnetclaim.Binder.clear.
func (s *server) clear(of []*v1alpha1.Subnet) {
	for _, o := range of {
		if o.Status.Phase == v1alpha1.SubnetFailed {
			s.remove(o)
		}
	}
}

// advance mirrors subnetpoolclaim.Reconciler.advance: block, newBlock, pool, newPool.
func (s *server) advance() {
	c, ok := get[*v1alpha1.SubnetPoolClaim](s, poolClaimSlot)
	if !ok {
		return
	}
	if len(c.Finalizers) == 0 {
		next := c.DeepCopy()
		next.Finalizers = []string{v1alpha1.Finalizer}
		s.write(next)

		return
	}
	made, block := s.pool(lab), s.claim(lab)
	labels := map[string]string{v1alpha1.PoolClaimLabel: v1alpha1.PoolClaimLabelValue(c.Name)}
	phase := v1alpha1.ClaimPending
	switch {
	case block == nil:
		block = &v1alpha1.SubnetClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: network, Name: c.Name, Finalizers: []string{v1alpha1.Finalizer}, Labels: labels},
			Spec: v1alpha1.SubnetClaimSpec{
				PoolRef: c.Spec.ParentPoolRef, ClusterID: v1alpha1.LabelValue("pool-claim.", c.Name), BlockSize: new(c.Spec.DesiredBlockSize),
			},
		}
		if made != nil && !s.rules.blockUnrecorded {
			block.Annotations = map[string]string{v1alpha1.BlockAnnotation: c.Spec.ParentPoolRef + "/" + made.Spec.CIDR}
		}
		s.create(block)
	case s.rules.poolClaimByUID && block.UID != types.UID(lab+s.suffix):
		phase = v1alpha1.ClaimError // NameTaken
	case block.Status.Phase != v1alpha1.ClaimBound:
		if made != nil && block.Annotations[v1alpha1.BlockAnnotation] == "" && !s.rules.blockUnrecordedLater {
			next := block.DeepCopy()
			metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.BlockAnnotation, c.Spec.ParentPoolRef+"/"+made.Spec.CIDR)
			s.write(next)
		}
	case made == nil:
		if parent := s.pool(c.Spec.ParentPoolRef); parent != nil {
			s.create(s.makePool(parent, block.Status.AllocatedCIDR, maps.Clone(labels)))
		}
	case made.Open() != "":
		phase = v1alpha1.ClaimBound
	}
	if c.Status.Phase != phase {
		next := c.DeepCopy()
		next.Status.Phase = phase
		s.write(next)
	}
}

// makePool mirrors subnetpoolclaim.newPool.
func (s *server) makePool(parent *v1alpha1.SubnetPool, block string, labels map[string]string) *v1alpha1.SubnetPool {
	p := &v1alpha1.SubnetPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: network, Name: lab, Labels: labels},
		Spec:       v1alpha1.SubnetPoolSpec{CIDR: block, Parent: parent.Name},
	}
	if s.restoring(parent) && !s.rules.childNotRestoring {
		p.Annotations = map[string]string{v1alpha1.PoolUIDAnnotation: parent.Annotations[v1alpha1.PoolUIDAnnotation]}
	}

	return p
}
