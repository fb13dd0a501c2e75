package manager

import (
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// decoded is a Subnet with words of its own, as a decoder makes it.
func decoded(message string) *v1alpha1.Subnet {
	own := strings.Clone

	return &v1alpha1.Subnet{
		TypeMeta: metav1.TypeMeta{Kind: own(v1alpha1.SubnetKind), APIVersion: own("plexaubnet.io/v1alpha1")},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: own("team"), Name: "s", Annotations: map[string]string{"kept": "yes"},
			OwnerReferences: []metav1.OwnerReference{{Kind: own(v1alpha1.SubnetClaimKind), APIVersion: own("plexaubnet.io/v1alpha1"), Name: "c"}},
		},
		Spec: v1alpha1.SubnetSpec{PoolRef: own("pool"), CIDR: "10.0.0.0/24", ClusterID: "c"},
		Status: v1alpha1.SubnetStatus{
			Phase:      v1alpha1.SubnetPhase(own(string(v1alpha1.SubnetAllocated))),
			Conditions: []metav1.Condition{{Type: own("Ready"), Status: metav1.ConditionStatus(own("True")), Reason: own("Allocated"), Message: own(message)}},
		},
	}
}

// A Subnet in the cache equals the original, and two Subnets share their strings.
func TestSlimSubnets(t *testing.T) {
	slim := slimSubnets()
	kept := func(message string) *v1alpha1.Subnet {
		o := decoded(message)
		o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
		got, err := slim(o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decoded(message), got); diff != "" {
			t.Fatal(diff)
		}

		return o
	}
	one, two := kept("good"), kept("good")
	for name, pair := range map[string][2]string{
		"kind":      {one.Kind, two.Kind},
		"namespace": {one.Namespace, two.Namespace},
		"pool":      {one.Spec.PoolRef, two.Spec.PoolRef},
		"phase":     {string(one.Status.Phase), string(two.Status.Phase)},
		"message":   {one.Status.Conditions[0].Message, two.Status.Conditions[0].Message},
		"owner":     {one.OwnerReferences[0].Kind, two.OwnerReferences[0].Kind},
	} {
		if unsafe.StringData(pair[0]) != unsafe.StringData(pair[1]) { //nolint:gosec // only compared
			t.Errorf("%s is there twice", name)
		}
	}
	if &one.Status.Conditions[0] != &two.Status.Conditions[0] {
		t.Error("the conditions are there twice")
	}
	kept(strings.Repeat("long", longest))
}

// The number of shared strings is limited.
func TestSharerForgets(t *testing.T) {
	var s sharer
	for i := range 3*words + 1 {
		word := strconv.Itoa(i)
		if s.share(&word); word != strconv.Itoa(i) || len(s.words) > words {
			t.Fatalf("%q for %d, with %d words", word, i, len(s.words))
		}
	}
}

// A reflector transforms what it lists a second time when it replaces the contents of a cache. The
// objects then share conditions with objects that are being read, which the race detector reports
// if they are written.
func TestTransformedTwice(t *testing.T) {
	slim := slimSubnets()
	cached, listed := decoded("good"), decoded("good")
	for _, o := range []*v1alpha1.Subnet{cached, listed} {
		if _, err := slim(o); err != nil {
			t.Fatal(err)
		}
	}
	read := make(chan *v1alpha1.Subnet)
	go func() { read <- cached.DeepCopy() }()
	if _, err := slim(listed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(listed, <-read); diff != "" {
		t.Errorf("two equal Subnets differ:\n%s", diff)
	}
}
