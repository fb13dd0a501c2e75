package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// A pagingReader lists Subnets in pages, as the API server does, and records the requests.
type pagingReader struct {
	client.Reader

	subnets []v1alpha1.Subnet
	err     error // of requests with a field selector
	calls   []listCall
}

// A listCall is one list request.
type listCall struct {
	Namespace, Fields string
	Limit             int64
	From              int // index of the first Subnet
}

func (r *pagingReader) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	call := listCall{Namespace: o.Namespace, Limit: o.Limit}
	call.From, _ = strconv.Atoi(o.Continue)
	if o.FieldSelector != nil {
		call.Fields = o.FieldSelector.String()
	}
	r.calls = append(r.calls, call)
	if call.Fields != "" && r.err != nil {
		return r.err
	}
	page, ok := list.(*v1alpha1.SubnetList)
	if !ok {
		return fmt.Errorf("unexpected kind %T", list)
	}
	var found []v1alpha1.Subnet
	for _, s := range r.subnets {
		if call.Fields == "" || call.Fields == "spec.poolRef="+s.Spec.PoolRef {
			found = append(found, s)
		}
	}
	end := len(found)
	if o.Limit > 0 {
		end = min(call.From+int(o.Limit), len(found))
	}
	page.Items = found[call.From:end]
	if end < len(found) {
		page.Continue = strconv.Itoa(end)
	}

	return nil
}

// A live list costs one request for each 500 Subnets of the pool, not for those of the
// namespace. Only an API server without the selectable field returns all of them.
func TestLiveSubnets(t *testing.T) {
	const ofPool, ofOther, fields = 1200, 700, "spec.poolRef=p"
	var subnets []v1alpha1.Subnet
	for i := range ofPool + ofOther {
		s := v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("s-%d", i)}, Spec: v1alpha1.SubnetSpec{PoolRef: "p"}}
		if i%2 == 1 && i < 2*ofOther {
			s.Spec.PoolRef = "other"
		}
		subnets = append(subnets, s)
	}
	pages := func(fields string, from ...int) []listCall {
		var all []listCall
		for _, n := range from {
			all = append(all, listCall{Namespace: "ns", Fields: fields, Limit: 500, From: n})
		}

		return all
	}
	badRequest := apierrors.NewBadRequest("field label not supported: spec.poolRef")
	broken := errors.New("the connection is lost")
	cases := map[string]struct {
		reason string
		pool   string
		err    error
		stop   int // after how many Subnets, 0 for none
		want   []listCall
		seen   int
		failed error
	}{
		"Selectable":    {"The API server selects the Subnets of the pool.", "p", nil, 0, pages(fields, 0, 500, 1000), ofPool, nil},
		"Stopped":       {"The first page is enough.", "p", nil, 1, pages(fields, 0), 1, nil},
		"StoppedLater":  {"The second page is enough.", "p", nil, 501, pages(fields, 0, 500), 501, nil},
		"Empty":         {"A pool without Subnets costs one request.", "none", nil, 0, pages("spec.poolRef=none", 0), 0, nil},
		"AllPools":      {"All Subnets of the namespace are asked for.", AllPools, nil, 0, pages("", 0, 500, 1000, 1500), ofPool + ofOther, nil},
		"NotSelectable": {"A CRD of a former version: Subnets of other pools are left out here.", "p", badRequest, 0, append(pages(fields, 0), pages("", 0, 500, 1000, 1500)...), ofPool, nil},
		"Broken":        {"Other errors do not cause a list of the namespace.", "p", broken, 0, pages(fields, 0), 0, broken},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, seen := &pagingReader{subnets: subnets, err: tc.err}, 0
			err := LiveSubnets(t.Context(), r, "ns", tc.pool, func(s *v1alpha1.Subnet) bool {
				seen++
				if tc.pool != AllPools && s.Spec.PoolRef != tc.pool {
					t.Errorf("%s\nSubnet %s is of pool %s", tc.reason, s.Name, s.Spec.PoolRef)
				}

				return seen != tc.stop
			})
			if !errors.Is(err, tc.failed) {
				t.Errorf("%s\ngot the error %v, want %v", tc.reason, err, tc.failed)
			}
			if seen != tc.seen {
				t.Errorf("%s\ngot %d Subnets, want %d", tc.reason, seen, tc.seen)
			}
			if diff := cmp.Diff(tc.want, r.calls); diff != "" {
				t.Errorf("%s\nrequests (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// expiringReader rejects every page but the first one, as the API server does after a compaction.
type expiringReader struct{ *pagingReader }

func (r expiringReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if (&client.ListOptions{}).ApplyOptions(options).Continue != "" {
		return apierrors.NewResourceExpired("The provided continue parameter is too old")
	}

	return r.pagingReader.List(ctx, list, options...)
}

// A list whose continue token has expired is an error: a caller that took the first page for all
// would free blocks that are in use.
func TestLiveSubnetsExpired(t *testing.T) {
	r := expiringReader{&pagingReader{subnets: make([]v1alpha1.Subnet, livePage+1)}}
	if err := LiveSubnets(t.Context(), r, "ns", AllPools, func(*v1alpha1.Subnet) bool { return true }); !apierrors.IsResourceExpired(err) {
		t.Errorf("got the error %v, want that of the API server", err)
	}
}
