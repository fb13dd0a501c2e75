package subnets_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
)

// A transfer is a namespace that is exported, deleted and imported.
type transfer struct {
	*restore

	byHand string // the block of the Subnet that was made by hand
	file   string
}

func newTransfer(t *testing.T, w *world) *transfer {
	t.Helper()

	return &transfer{restore: &restore{world: w, had: map[string]string{}}, byHand: "10.0.200.0/24", file: t.TempDir()}
}

// take creates claims, and records their blocks. They are not the first free ones of
// their pools, so a claim that is served without its record has another block.
func (x *transfer) take(claims ...*v1alpha1.SubnetClaim) {
	x.t.Helper()
	for _, claim := range claims {
		early := x.claim(claim.Spec.PoolRef, "early-"+claim.Name, *claim.Spec.BlockSize)
		x.create(early)
		x.bound(early)
		x.create(claim)
		x.had[claim.Name] = x.bound(claim)
		x.remove(early)
		x.gone(early, newSubnet(x.ns, early.Status.SubnetRef, ""))
	}
}

// export writes the namespace into a file.
func (x *transfer) export(format string) {
	x.t.Helper()
	out, errs, code := server.Arbor(x.t, "pools", "export", "-n", x.ns, "-o", format)
	if code != 0 || errs != "" {
		x.t.Fatalf("exit code %d: %s", code, errs)
	}
	x.file = filepath.Join(x.file, "pools."+format)
	must(x.t, os.WriteFile(x.file, []byte(out), 0o600))
	// A backup is complete without its Subnets, too.
	for name, cidr := range x.had {
		claim := x.claim("", name, 0)
		must(x.t, x.get(claim))
		if format == "csv" {
			says(x.t, out, strings.Join([]string{x.ns, claim.Spec.PoolRef, cidr, claim.Spec.ClusterID, name}, ","))
		} else {
			says(x.t, out, v1alpha1.BlockAnnotation+": "+claim.Spec.PoolRef+"/"+cidr)
		}
	}
}

// importAll imports the file, which has some objects, first as a dry run.
func (x *transfer) importAll(objects int) {
	x.t.Helper()
	says(x.t, arbor(x.t, 0, "pools", "import", "-f", x.file, "--dry-run"), fmt.Sprintf("%d objects to create, 0 unchanged, 0 conflicts (dry run", objects))
	if left, err := x.list(); err != nil || len(left) > 0 {
		x.t.Fatalf("a dry run has created %d objects (%v)", len(left), err)
	}
	// The manager can be faster than the import, and create the pool of a SubnetPoolClaim.
	out := arbor(x.t, 0, "pools", "import", "-f", x.file)
	says(x.t, out, "0 conflicts, 0 failed")
}

// importAgain imports the file once more, which changes nothing.
func (x *transfer) importAgain(objects int) {
	x.t.Helper()
	before := x.identities()
	says(x.t, arbor(x.t, 0, "pools", "import", "-f", x.file), fmt.Sprintf("0 objects created, %d unchanged, 0 conflicts, 0 failed", objects))
	x.barrier()
	after := x.identities()
	for name, uid := range before {
		if after[name] != uid {
			x.t.Errorf("%s was %s before the second import, and is %q", name, uid, after[name])
		}
		delete(after, name)
	}
	if len(after) > 0 {
		x.t.Errorf("the second import has created %v", after)
	}
	x.unchanged()
}

// identities returns the UIDs of all objects, except for those of a barrier.
func (x *transfer) identities() map[string]types.UID {
	x.t.Helper()
	all, err := x.list()
	must(x.t, err)
	found := map[string]types.UID{}
	for _, o := range all {
		if o.GetGenerateName() == "" {
			found[fmt.Sprintf("%T %s", o, o.GetName())] = o.GetUID()
		}
	}

	return found
}

// verify waits until everything is as it was before the export.
func (x *transfer) verify(byHand *v1alpha1.Subnet) {
	x.t.Helper()
	x.unchanged()
	x.judged(byHand, v1alpha1.SubnetAllocated)
	if byHand.Spec.CIDR != x.byHand || byHand.Spec.ClusterID != "by-hand" || byHand.Spec.ClaimRef != nil {
		x.t.Errorf("the Subnet that was made by hand is %+v", byHand.Spec)
	}
	x.eventually("every Subnet belongs to one claim", x.owned)
	must(x.t, x.exclusive())
	awaitSound(x.t, x.ns, "nothing wrong")
}

// A namespace that was exported, deleted and imported is as it was: claims have their
// blocks, one without a block waits again, and pools allocate.
func TestExportImport(t *testing.T) {
	c := newClient(t)
	m := server.StartManager(t, only, noWebhooks)
	x := newTransfer(t, newWorld(t, c))
	hand, lab := x.pool("hand", "10.0.64.0/20", "root"), x.poolClaim("lab", "root", 20)
	x.create(x.pool("root", "10.0.0.0/16", ""))
	x.take(x.claim("root", "one", 24), x.claim("root", "two", 26))
	x.create(hand, lab)
	x.take(x.claim("hand", "three", 24), x.claim("lab", "inner", 24))
	x.awaitPoolClaim(lab, metav1.ConditionTrue, "Bound")
	x.had["lab"] = x.bound(x.claim("", "lab", 0))
	byHand := newSubnet(x.ns, "by-hand", x.byHand)
	byHand.Spec.PoolRef = "root"
	allocated(t, c, byHand)
	waiting := x.claim("root", "waiting", 24)
	waiting.Spec.ClusterID = "one"
	x.create(waiting)
	x.waits(waiting, "ClusterIDInUse")
	awaitSound(t, x.ns, "nothing wrong")
	before := x.identities()

	x.export("yaml")
	x.removeAll()
	x.importAll(len(before))
	for _, pool := range []string{"root", "hand", "lab"} {
		x.endRestore(pool)
	}
	x.verify(byHand)
	x.waits(waiting, "ClusterIDInUse")
	after := x.identities()
	for name, uid := range before {
		if after[name] == "" || after[name] == uid {
			t.Errorf("%s was %s, and is %q after the import", name, uid, after[name])
		}
	}
	x.importAgain(len(before))
	x.waits(waiting, "ClusterIDInUse")

	// It can be used as before.
	x.remove(x.claim("", "one", 0))
	x.bound(waiting)
	for _, pool := range []string{"root", "hand", "lab"} {
		fresh := x.claim(pool, "fresh-"+pool, 24)
		x.create(fresh)
		x.bound(fresh)
	}
	must(t, x.exclusive())
	x.removeAll()
	m.Stop()

	// Webhooks do not stand in the way. They time out if the manager is late: then the
	// import is repeated.
	startAdmission(t, c)
	x.eventually("the import is complete", func() error {
		if out, errs, code := server.Arbor(t, "pools", "import", "-f", x.file); code != 0 {
			return fmt.Errorf("exit code %d: %s%s", code, out, errs)
		}

		return nil
	})
	x.unchanged()
	must(t, x.exclusive())
	x.removeAll()
}

// endRestore ends the restore of a pool, which can be over: the manager creates the pool
// of a SubnetPoolClaim if it is faster than the import.
func (x *transfer) endRestore(pool string) {
	x.t.Helper()
	arbor(x.t, 0, "pools", "restored", pool, "-n", x.ns)
	x.eventually("pool "+pool+" is open and not being restored", func() error {
		p := x.pool(pool, "", "")
		if err := x.get(p); err != nil {
			return err
		}
		if p.Open() == "" || p.Annotations[v1alpha1.PoolUIDAnnotation] != string(p.UID) {
			return fmt.Errorf("it is %+v with the annotations %v", p.Status, p.Annotations)
		}

		return nil
	})
}

// A list of blocks keeps the blocks of plain claims, of child pools and of Subnets that
// were made by hand.
func TestExportImportCSV(t *testing.T) {
	c := newClient(t)
	server.StartManager(t, only, noWebhooks)
	x := newTransfer(t, newWorld(t, c))
	x.create(x.pool("root", "10.0.0.0/16", ""), x.pool("hand", "10.0.64.0/20", "root"))
	x.take(x.claim("root", "one", 24), x.claim("root", "two", 26), x.claim("hand", "three", 24))
	byHand := newSubnet(x.ns, "by-hand", x.byHand)
	byHand.Spec.PoolRef = "root"
	allocated(t, c, byHand)
	awaitSound(t, x.ns, "nothing wrong")

	const objects = 6 // two pools, three claims, one Subnet
	x.export("csv")
	x.removeAll()
	x.importAll(objects)
	// A row does not have the name of a Subnet.
	x.verify(newSubnet(x.ns, "root-10-0-200-0-24", ""))
	x.importAgain(objects)
	fresh := x.claim("root", "fresh", 24)
	x.create(fresh)
	x.bound(fresh)
	must(t, x.exclusive())
	x.removeAll()
}

// PoolStatus runs with the options that its package tests: a controller without them has
// one worker.
func TestPoolStatusWorkers(t *testing.T) {
	newClient(t)
	m := server.StartManager(t, only, noWebhooks)
	workers := 0.0
	cluster.Eventually(t, "the controller is started", func() error {
		if workers = m.Sum(t, `controller_runtime_max_concurrent_reconciles{controller="PoolStatus"}`); workers == 0 {
			return errors.New("there is no metric of it")
		}

		return nil
	})
	if workers != 5 {
		t.Errorf("PoolStatus has %v workers, want 5", workers)
	}
}
