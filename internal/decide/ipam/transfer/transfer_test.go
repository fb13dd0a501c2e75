package transfer_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
	"github.com/arbor-control/arbor/internal/decide/ipam/transfer"
)

var prefixes = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

func row(pool, cidr, parent, clusterID, claim string) transfer.Row {
	return transfer.Row{Namespace: "net", Pool: pool, CIDR: netip.MustParsePrefix(cidr), Parent: parent, ClusterID: clusterID, Claim: claim}
}

var rows = []transfer.Row{
	row("core", "10.0.0.0/16", "", "", ""),
	row("lab", "10.0.16.0/20", "core", "", ""),
	row("six", "fd00::/48", "", "", ""),
	row("core", "10.0.0.0/24", "", "edge-1", "team"),
	row("lab", "10.0.16.0/24", "", "edge-2", ""),
	row("six", "fd00::/64", "", "edge-1", ""),
}

// Written rows can be read again, and are the same.
func TestRoundTrip(t *testing.T) {
	cases := map[string]struct {
		reason string
		write  func(*bytes.Buffer) error
		read   func([]byte) ([]transfer.Row, error)
		format transfer.Format
	}{
		"CSV": {
			reason: "our own format has everything", format: transfer.FormatCSV,
			write: func(b *bytes.Buffer) error { return transfer.WriteCSV(b, rows) },
			read:  func(b []byte) ([]transfer.Row, error) { return transfer.ReadCSV(b, "other") },
		},
		"NetBox": {
			reason: "the description has the rest", format: transfer.FormatNetBox,
			write: func(b *bytes.Buffer) error { return transfer.WriteNetBox(b, rows) },
			read:  func(b []byte) ([]transfer.Row, error) { return transfer.ReadNetBox(b, "other") },
		},
		"AWS": {
			reason: "pools that are there keep their names", format: transfer.FormatAWS,
			write: func(b *bytes.Buffer) error { return transfer.WriteAWS(b, rows) },
			read: func(b []byte) ([]transfer.Row, error) {
				all, err := transfer.ReadAWS(b, "net")
				if err != nil {
					return nil, err
				}

				return transfer.Place(all, transfer.Objects(rows))
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := tc.write(&b); err != nil {
				t.Fatal(err)
			}
			if got := transfer.Detect("-", b.Bytes()); got != tc.format {
				t.Errorf("it is taken for %s, want %s", got, tc.format)
			}
			got, err := tc.read(b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sortedRows(rows), sortedRows(got), prefixes); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%s", tc.reason, diff, b.String())
			}
		})
	}
}

func sortedRows(all []transfer.Row) map[netip.Prefix]transfer.Row {
	found := map[netip.Prefix]transfer.Row{}
	for _, r := range all {
		found[r.CIDR] = r
	}

	return found
}

func TestRead(t *testing.T) {
	read := map[string]func([]byte) ([]transfer.Row, error){
		"csv":    func(b []byte) ([]transfer.Row, error) { return transfer.ReadCSV(b, "net") },
		"netbox": func(b []byte) ([]transfer.Row, error) { return transfer.ReadNetBox(b, "net") },
		"aws":    func(b []byte) ([]transfer.Row, error) { return transfer.ReadAWS(b, "net") },
	}
	cases := map[string]struct {
		reason, format, text string
		want                 []transfer.Row
		err                  string
	}{
		"Columns":      {reason: "columns are found by name", format: "csv", text: "clusterid,CIDR,pool\n,10.0.0.0/16,core\nedge-1,10.0.0.0/24,core\n", want: []transfer.Row{row("core", "10.0.0.0/16", "", "", ""), row("core", "10.0.0.0/24", "", "edge-1", "")}},
		"Empty":        {reason: "a file has a header", format: "csv", err: "line 1: there is no header; begin with a line pool,cidr,clusterID"},
		"NoColumn":     {reason: "with the columns that are needed", format: "csv", text: "pool,cidr\n", err: `line 1: there is no column clusterID in "pool,cidr"; add it to the header`},
		"CIDR":         {reason: "a CIDR is one", format: "csv", text: "pool,cidr,clusterID\ncore,10.0.0/16,\n", err: `line 2: cidr "10.0.0/16": it is not a CIDR; write an address and a length, such as 10.0.0.0/24 or fd00::/64`},
		"Masked":       {reason: "and has one way to be written", format: "csv", text: "pool,cidr,clusterID\ncore,10.0.0.1/16,\n", err: `line 2: cidr "10.0.0.1/16": it has bits set behind its length; write 10.0.0.0/16`},
		"Mapped":       {reason: "in its own family", format: "csv", text: "pool,cidr,clusterID\ncore,::ffff:10.0.0.0/112,\n", err: `line 2: cidr "::ffff:10.0.0.0/112": it is IPv4 written as IPv6; write it as IPv4`},
		"Pool":         {reason: "each row has a pool", format: "csv", text: "pool,cidr,clusterID\n,10.0.0.0/16,a\n", err: `line 2: pool "": it is missing; name the pool of the row`},
		"Name":         {reason: "of a name that an object can have", format: "csv", text: "pool,cidr,clusterID\nCore,10.0.0.0/16,\n", err: `line 2: pool "Core": it is not the name of an object; use lower case letters, digits, - and . only`},
		"ClusterID":    {reason: "so have clusters", format: "csv", text: "pool,cidr,clusterID\ncore,10.0.0.0/16,edge-\n", err: `line 2: clusterID "edge-": it is not a clusterID; use at most 63 lower case letters, digits, - and ., with a letter or digit at both ends`},
		"Claim":        {reason: "a claim is for a cluster", format: "csv", text: "pool,cidr,clusterID,claim\ncore,10.0.0.0/16,,team\n", err: `line 2: clusterID "": it is missing, but there is a claim; name the cluster that the block of the claim is for`},
		"Fields":       {reason: "no line is longer than the header", format: "csv", text: "pool,cidr,clusterID\ncore,10.0.0.0/16,a,b\n", err: "line 2: it has 4 fields, and the header has 3; quote fields that contain a comma"},
		"Quote":        {reason: "quotes are closed", format: "csv", text: "pool,cidr,clusterID\ncore,\"10.0.0.0/16,a\n", err: "line 2: extraneous or missing \" in quoted-field; write it as CSV, with quotes around fields that contain quotes or commas"},
		"NetBox":       {reason: "an export of NetBox says little", format: "netbox", text: "id,prefix,status,tenant,description\n1,10.0.0.0/16,Container,,Core\n2,10.0.0.0/24,active,Team A,\n3,10.0.1.0/24,reserved,,\n", want: []transfer.Row{row("netbox-10-0-0-0-16", "10.0.0.0/16", "", "", ""), row("", "10.0.0.0/24", "", "team-a", ""), row("", "10.0.1.0/24", "", "netbox-10-0-1-0-24", "")}},
		"NetBoxStatus": {reason: "statuses are NetBox's", format: "netbox", text: "prefix,status\n10.0.0.0/16,gone\n", err: `line 2: status "gone": it is not a status of a NetBox prefix; use container for pools, and active, reserved or deprecated for blocks`},
		"AWS":          {reason: "names are made of IDs", format: "aws", text: `{"IpamPoolCidrs":[{"Cidr":"10.0.0.0/8","State":"provisioned"},{"Cidr":"11.0.0.0/8","State":"failed-provision"}],"IpamPoolAllocations":[{"Cidr":"10.0.0.0/16","IpamPoolAllocationId":"ipam-pool-alloc-1","ResourceId":"vpc-0A","ResourceType":"vpc"},{"Cidr":"10.1.0.0/16","ResourceId":"ipam-pool-2","ResourceType":"ipam-pool"}]}`, want: []transfer.Row{row("aws-10-0-0-0-8", "10.0.0.0/8", "", "", ""), row("", "10.0.0.0/16", "", "vpc-0a", ""), row("ipam-pool-2", "10.1.0.0/16", "", "", "")}},
		"AWSOther":     {reason: "other JSON is not AWS'", format: "aws", text: "{}", err: "line 1: there is neither IpamPoolCidrs nor IpamPoolAllocations; give the output of aws ec2 get-ipam-pool-cidrs or get-ipam-pool-allocations"},
		"AWSCIDR":      {reason: "a place in JSON is named", format: "aws", text: `{"IpamPoolAllocations":[{"Cidr":"x"}]}`, err: `IpamPoolAllocations[0]: Cidr "x": it is not a CIDR; write an address and a length, such as 10.0.0.0/24 or fd00::/64`},
		"AWSType":      {reason: "types are as they are", format: "aws", text: "{\n\"IpamPoolCidrs\":\n3}", err: "line 3: IpamPoolCidrs is a number, not a []transfer.awsCidr; write it as JSON"},
		"AWSShort":     {reason: "JSON ends", format: "aws", text: "{\n\"IpamPoolCidrs\":", err: "line 2: it ends too early; write it as JSON"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := read[tc.format]([]byte(tc.text))
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.err, message); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got, prefixes); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlace(t *testing.T) {
	have := transfer.Objects([]transfer.Row{row("core", "10.0.0.0/8", "", "", "")})
	got, err := transfer.Place([]transfer.Row{
		row("netbox-10-0-0-0-8", "10.0.0.0/8", "", "", ""), row("netbox-10-1-0-0-16", "10.1.0.0/16", "", "", ""),
		row("", "10.1.1.0/24", "", "a", ""), row("", "10.2.0.0/24", "", "b", ""),
	}, have)
	if err != nil {
		t.Fatal(err)
	}
	want := []transfer.Row{
		row("core", "10.0.0.0/8", "", "", ""), row("netbox-10-1-0-0-16", "10.1.0.0/16", "core", "", ""),
		row("netbox-10-1-0-0-16", "10.1.1.0/24", "", "a", ""), row("core", "10.2.0.0/24", "", "b", ""),
	}
	if diff := cmp.Diff(want, got, prefixes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := transfer.Place([]transfer.Row{row("", "11.0.0.0/24", "", "a", "")}, have); err == nil {
		t.Error("a block outside of all pools has one")
	}
}

func TestPlan(t *testing.T) {
	core := row("core", "10.0.0.0/16", "", "", "")
	held := transfer.Objects([]transfer.Row{core, row("core", "10.0.0.0/24", "", "x", "")})
	served := transfer.Objects([]transfer.Row{core, row("core", "10.0.0.0/24", "", "x", "team")})
	served.Claims[0].Status.AllocatedCIDR = "10.0.0.0/24"

	cases := map[string]struct {
		reason string
		want   []transfer.Row
		have   ipamaudit.Inventory
		steps  []string
	}{
		"New":       {reason: "everything is new", want: rows, steps: []string{"core create", "lab create", "six create", "lab-10-0-16-0-24 create", "six-fd00---64 create", "team create"}},
		"Again":     {reason: "twice is once", want: rows, have: transfer.Objects(rows), steps: []string{"core same", "lab same", "six same", "lab-10-0-16-0-24 same", "six-fd00---64 same", "team same"}},
		"Overlap":   {reason: "a block that is taken", want: []transfer.Row{row("core", "10.0.0.0/25", "", "y", "")}, have: held, steps: []string{"core-10-0-0-0-25 10.0.0.0/25 overlaps 10.0.0.0/24 of Subnet core-10-0-0-0-24"}},
		"Claim":     {reason: "a claim for a block that is taken", want: []transfer.Row{row("core", "10.0.0.0/24", "", "y", "c")}, have: held, steps: []string{"c 10.0.0.0/24 overlaps 10.0.0.0/24 of Subnet core-10-0-0-0-24"}},
		"Bound":     {reason: "a claim of another block", want: []transfer.Row{row("core", "10.0.1.0/24", "", "x", "team")}, have: served, steps: []string{"team there is a SubnetClaim of that name with 10.0.0.0/24"}},
		"Cluster":   {reason: "a cluster has one block of a pool", want: []transfer.Row{row("core", "10.0.1.0/24", "", "x", "c")}, have: served, steps: []string{"c SubnetClaim team has the block of cluster x in pool core"}},
		"Outside":   {reason: "a block outside of its pool", want: []transfer.Row{row("core", "10.1.0.0/24", "", "y", "c")}, have: held, steps: []string{"c 10.1.0.0/24 is not inside of pool core, 10.0.0.0/16: ask for a block of that, or of another pool"}},
		"NoPool":    {reason: "a block of no pool", want: []transfer.Row{row("gone", "10.1.0.0/24", "", "y", "")}, have: held, steps: []string{"gone-10-1-0-0-24 there is no pool gone"}},
		"Pools":     {reason: "pools that share addresses", want: []transfer.Row{row("new", "10.0.0.0/8", "", "", "")}, have: held, steps: []string{"new 10.0.0.0/8 overlaps 10.0.0.0/16 of pool core, which is a root pool of this namespace too"}},
		"OtherPool": {reason: "another pool of that name", want: []transfer.Row{row("core", "10.1.0.0/16", "", "", "")}, have: held, steps: []string{"core there is a pool of that name with 10.0.0.0/16"}},
		"EachOther": {reason: "two of one file", want: []transfer.Row{core, row("core", "10.0.0.0/24", "", "a", ""), row("core", "10.0.0.0/25", "", "b", "c")}, steps: []string{"core create", "core-10-0-0-0-24 create", "c 10.0.0.0/25 overlaps 10.0.0.0/24 of Subnet core-10-0-0-0-24"}},
		"Subnets":   {reason: "two Subnets of one file", want: []transfer.Row{core, row("core", "10.0.0.0/24", "", "a", ""), row("core", "10.0.0.0/25", "", "b", ""), row("core", "10.0.0.128/25", "", "c", "c")}, steps: []string{"core create", "core-10-0-0-0-24 10.0.0.0/24 overlaps 10.0.0.0/25 of Subnet core-10-0-0-0-25", "core-10-0-0-0-25 10.0.0.0/25 overlaps 10.0.0.0/24 of Subnet core-10-0-0-0-24", "c create"}},
		"Claims":    {reason: "of two claims of one file, the first gets the block", want: []transfer.Row{core, row("core", "10.0.0.0/24", "", "a", "a"), row("core", "10.0.0.0/16", "", "b", "b")}, steps: []string{"core create", "a create", "b 10.0.0.0/16 overlaps 10.0.0.0/24 of SubnetClaim a"}},
		"Names":     {reason: "two claims of one name", want: []transfer.Row{core, row("core", "10.0.0.0/24", "", "a", "c"), row("core", "10.0.1.0/24", "", "a", "c")}, steps: []string{"core create", "c create", "c there is a SubnetClaim of that name with 10.0.0.0/24"}},
		"Size":      {reason: "sizes that a pool does not have", want: []transfer.Row{row("core", "10.0.0.0/24", "", "a", "c")}, have: limited(core), steps: []string{"c pool core allocates blocks from /16 to /20, not /24"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.steps, planned(transfer.Objects(tc.want), tc.have)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// planned returns the steps of a plan as text.
func planned(want, have ipamaudit.Inventory) []string {
	var all []string
	for _, s := range transfer.Plan(want, have) {
		text := s.Name + " create"
		switch {
		case s.Conflict != "":
			text = s.Name + " " + s.Conflict
		case s.Exists:
			text = s.Name + " same"
		case s.Waits != "":
			text += ", waits: " + s.Waits
		}
		all = append(all, text)
	}

	return all
}

// asking returns a claim that has no block: it asks for a CIDR, or for any /24.
func asking(name, clusterID, block string) v1alpha1.SubnetClaim {
	c := v1alpha1.SubnetClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "net", Name: name},
		Spec:       v1alpha1.SubnetClaimSpec{PoolRef: "core", ClusterID: clusterID, RequestedCIDR: block},
		Status:     v1alpha1.SubnetClaimStatus{Phase: v1alpha1.ClaimPending},
	}
	if block == "" {
		c.Spec.BlockSize = new(int32(24))
	}

	return c
}

// bound adds the Subnet of a claim to an inventory, and the claim with its status.
func bound(e *ipamaudit.Inventory, name, clusterID, block string) {
	c := asking(name, clusterID, "")
	c.Status = v1alpha1.SubnetClaimStatus{Phase: v1alpha1.ClaimBound, AllocatedCIDR: block, SubnetRef: "s-" + name}
	e.Claims = append(e.Claims, c)
	e.Subnets = append(e.Subnets, v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "net", Name: "s-" + name},
		Spec:       v1alpha1.SubnetSpec{PoolRef: "core", CIDR: block, ClusterID: clusterID, ClaimRef: &v1alpha1.ClaimReference{Name: name}},
		Status:     v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetAllocated},
	})
}

// Claims that wait are imported without a conflict, after those that have a block.
func TestPlanWaiting(t *testing.T) {
	cases := map[string]struct {
		reason string
		source func(*ipamaudit.Inventory)
		have   func(*ipamaudit.Inventory)
		steps  []string
	}{
		"Taken": {
			reason: "a Subnet is created although a claim asks for its block",
			source: func(e *ipamaudit.Inventory) {
				bound(e, "team", "a", "10.0.0.0/24")
				e.Claims = append(e.Claims, asking("again", "b", "10.0.0.0/24"))
			},
			steps: []string{"core create", "s-team create", "team create", "again create, waits: 10.0.0.0/24 overlaps 10.0.0.0/24 of Subnet s-team"},
		},
		"Part": {
			reason: "host bits of a requested CIDR do not count, and a part of it is enough",
			source: func(e *ipamaudit.Inventory) {
				bound(e, "team", "a", "10.0.0.0/24")
				e.Claims = append(e.Claims, asking("again", "b", "10.0.3.1/20"))
			},
			steps: []string{"core create", "s-team create", "team create", "again create, waits: 10.0.0.0/20 overlaps 10.0.0.0/24 of Subnet s-team"},
		},
		"NoSubnets": {
			reason: "a backup may have claims only; the record says which one has the block",
			source: func(e *ipamaudit.Inventory) {
				bound(e, "team", "a", "10.0.0.0/24")
				e.Claims, e.Subnets = append(e.Claims, asking("again", "b", "10.0.0.0/24")), nil
			},
			steps: []string{"core create", "team create", "again create, waits: 10.0.0.0/24 overlaps 10.0.0.0/24 of SubnetClaim team"},
		},
		"ClusterID": {
			reason: "the clusterID belongs to the claim with a block, whatever the order of the file",
			source: func(e *ipamaudit.Inventory) {
				e.Claims = append(e.Claims, asking("again", "a", ""))
				bound(e, "team", "a", "10.0.0.0/24")
			},
			steps: []string{"core create", "s-team create", "team create", "again create, waits: SubnetClaim team has the block of cluster a in pool core"},
		},
		"Each": {
			reason: "claims that wait do not stand in each other's way: no one knows which is served first",
			source: func(e *ipamaudit.Inventory) {
				e.Claims = append(e.Claims, asking("one", "a", "10.0.0.0/24"), asking("two", "b", "10.0.0.0/24"), asking("three", "a", ""))
			},
			steps: []string{"core create", "one create", "two create", "three create"},
		},
		"Never": {
			reason: "also a claim that can never be served is the same in both clusters",
			source: func(e *ipamaudit.Inventory) {
				e.Claims = append(e.Claims, asking("outside", "a", "10.9.0.0/24"), asking("nowhere", "b", ""))
				e.Claims[1].Spec.PoolRef = "gone"
			},
			steps: []string{
				"core create", "outside create, waits: 10.9.0.0/24 is not inside of pool core, 10.0.0.0/16: ask for a block of that, or of another pool",
				"nowhere create, waits: there is no pool gone",
			},
		},
		"Replaced": {
			reason: "a claim does not have the Subnet of a former claim of its name",
			source: func(e *ipamaudit.Inventory) {
				bound(e, "team", "a", "10.0.0.0/24")
				e.Claims = []v1alpha1.SubnetClaim{asking("team", "b", "10.0.0.0/24")}
			},
			steps: []string{"core create", "s-team create", "team create, waits: 10.0.0.0/24 overlaps 10.0.0.0/24 of Subnet s-team"},
		},
		"Recorded": {
			reason: "a block that a claim had is a conflict, of the claim only",
			source: func(e *ipamaudit.Inventory) {
				bound(e, "lost", "a", "10.0.0.0/24")
				e.Subnets = nil
				bound(e, "team", "b", "10.0.0.0/24")
			},
			steps: []string{"core create", "s-team create", "lost 10.0.0.0/24 overlaps 10.0.0.0/24 of Subnet s-team", "team create"},
		},
		"LeftOut": {
			reason: "the claim of a Subnet that cannot be created cannot have its block either",
			source: func(e *ipamaudit.Inventory) { bound(e, "team", "a", "10.0.0.0/24") },
			have:   func(e *ipamaudit.Inventory) { bound(e, "other", "b", "10.0.0.0/20") },
			steps:  []string{"core same", "s-team 10.0.0.0/24 overlaps 10.0.0.0/20 of Subnet s-other", "team 10.0.0.0/24 overlaps 10.0.0.0/20 of Subnet s-other"},
		},
		"InCluster": {
			reason: "claims of the cluster that wait have no block and no clusterID",
			source: func(e *ipamaudit.Inventory) { bound(e, "team", "a", "10.0.0.0/24") },
			have:   func(e *ipamaudit.Inventory) { e.Claims = append(e.Claims, asking("again", "a", "10.0.0.0/24")) },
			steps:  []string{"core same", "s-team create", "team create"},
		},
		"Child": {
			reason: "the claim for the block of a child pool has that block, and no other claim",
			source: func(e *ipamaudit.Inventory) {
				e.Pools = append(e.Pools, transfer.Objects([]transfer.Row{row("lab", "10.0.4.0/24", "core", "", "")}).Pools...)
				bound(e, "lab", "pool-claim.lab", "10.0.4.0/24")
				e.Claims[0].Labels = map[string]string{v1alpha1.PoolClaimLabel: "lab"}
				e.Claims, e.Subnets = append(e.Claims, asking("again", "b", "10.0.4.0/25")), nil
			},
			steps: []string{"core create", "lab create", "lab create", "again create, waits: 10.0.4.0/25 overlaps 10.0.4.0/24 of the child pool lab"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			core := transfer.Objects([]transfer.Row{row("core", "10.0.0.0/16", "", "", "")})
			source, have := core, ipamaudit.Inventory{}
			tc.source(&source)
			if tc.have != nil {
				have = core
				tc.have(&have)
			}
			if diff := cmp.Diff(tc.steps, planned(transfer.Portable(source), have)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func limited(pool transfer.Row) ipamaudit.Inventory {
	e := transfer.Objects([]transfer.Row{pool})
	e.Pools[0].Spec.MaxBlockSize = new(int32(20))

	return e
}

func TestPortable(t *testing.T) {
	now := metav1.Now()
	stored := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "net", Name: name, UID: "u-1", ResourceVersion: "7", Generation: 3, Finalizers: []string{v1alpha1.Finalizer, "other"},
			OwnerReferences: []metav1.OwnerReference{{Kind: v1alpha1.SubnetPoolClaimKind, Name: "lab", Controller: new(true)}},
		}
	}
	labels := map[string]string{v1alpha1.PoolClaimLabel: "lab"}
	in := ipamaudit.Inventory{
		Pools: []v1alpha1.SubnetPool{{ObjectMeta: stored("lab"), Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.16.0/20"}}, {ObjectMeta: metav1.ObjectMeta{Name: "going", DeletionTimestamp: &now}}},
		Subnets: []v1alpha1.Subnet{
			{ObjectMeta: stored("s"), Spec: v1alpha1.SubnetSpec{PoolRef: "core", CIDR: "10.0.16.0/20", ClaimRef: &v1alpha1.ClaimReference{Name: "lab", UID: "u"}}},
			{ObjectMeta: stored("t"), Spec: v1alpha1.SubnetSpec{PoolRef: "core", CIDR: "10.0.32.0/20", Backs: &v1alpha1.PoolReference{Name: "hand", UID: "u"}}},
			{ObjectMeta: stored("failed"), Status: v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetFailed}},
		},
		Claims: []v1alpha1.SubnetClaim{{ObjectMeta: stored("lab"), Spec: v1alpha1.SubnetClaimSpec{PoolRef: "core", BlockSize: new(int32(20))}}},
	}
	in.Pools[0].Labels = map[string]string{v1alpha1.ParentLabel: "core"}
	want := ipamaudit.Inventory{
		Pools: []v1alpha1.SubnetPool{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "net", Name: "lab", Labels: map[string]string{v1alpha1.PoolClaimLabel: "lab", v1alpha1.ParentLabel: "core"}, Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: "u-1"}},
			Spec:       v1alpha1.SubnetPoolSpec{CIDR: "10.0.16.0/20", Parent: "core"},
		}},
		Subnets: []v1alpha1.Subnet{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "net", Name: "s", Labels: labels, Finalizers: []string{v1alpha1.Finalizer}},
			Spec:       v1alpha1.SubnetSpec{PoolRef: "core", CIDR: "10.0.16.0/20", ClaimRef: &v1alpha1.ClaimReference{Name: "lab"}, Backs: &v1alpha1.PoolReference{Name: "lab"}},
		}, {
			ObjectMeta: metav1.ObjectMeta{Namespace: "net", Name: "t", Labels: labels, Finalizers: []string{v1alpha1.Finalizer}},
			Spec:       v1alpha1.SubnetSpec{PoolRef: "core", CIDR: "10.0.32.0/20", Backs: &v1alpha1.PoolReference{Name: "hand"}},
		}},
		Claims: []v1alpha1.SubnetClaim{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "net", Name: "lab", Labels: labels, Annotations: map[string]string{v1alpha1.BlockAnnotation: "core/10.0.16.0/20"}},
			Spec:       v1alpha1.SubnetClaimSpec{PoolRef: "core", BlockSize: new(int32(20))},
		}},
	}
	got := transfer.Portable(in)
	for i := range got.Pools {
		got.Pools[i].TypeMeta = metav1.TypeMeta{}
	}
	for i := range got.Subnets {
		got.Subnets[i].TypeMeta = metav1.TypeMeta{}
	}
	for i := range got.Claims {
		got.Claims[i].TypeMeta = metav1.TypeMeta{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := transfer.Rows(in); len(got) != 1 {
		t.Errorf("got %v, want the pool alone", got)
	}
}

// A name that is too long for a label is a hash there, also for objects of former versions.
func TestPortableLongName(t *testing.T) {
	name := strings.Repeat("long-", 13) + "name"
	meta := metav1.ObjectMeta{Namespace: "net", Name: name}
	in := ipamaudit.Inventory{
		Subnets: []v1alpha1.Subnet{{ObjectMeta: metav1.ObjectMeta{Namespace: "net", Name: "s"}, Spec: v1alpha1.SubnetSpec{PoolRef: "core", CIDR: "10.0.16.0/20", ClaimRef: &v1alpha1.ClaimReference{Name: name}}}},
		Claims:  []v1alpha1.SubnetClaim{{ObjectMeta: meta, Spec: v1alpha1.SubnetClaimSpec{PoolRef: "core", BlockSize: new(int32(20))}}},
	}
	in.Claims[0].OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.SubnetPoolClaimKind, Name: name, Controller: new(true)}}
	once := transfer.Portable(in)
	if got, want := once.Claims[0].Labels[v1alpha1.PoolClaimLabel], v1alpha1.PoolClaimLabelValue(name); got != want || got == name {
		t.Errorf("the label is %q, want %q", got, want)
	}
	once.Subnets[0].Spec.Backs = nil
	if got := transfer.Portable(once).Subnets[0].Spec.Backs; got == nil || got.Name != name {
		t.Errorf("the Subnet backs %v, want %s", got, name)
	}
}

// Whatever is read, it is rows that can be written and read again, or an error with a position.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	for _, write := range []func() error{
		func() error { return transfer.WriteCSV(&b, rows) }, func() error { return transfer.WriteNetBox(&b, rows) }, func() error { return transfer.WriteAWS(&b, rows) },
	} {
		b.Reset()
		if err := write(); err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(b.Bytes()))
	}
	f.Add([]byte("pool,cidr,clusterID\ncore,10.0.0.0/16\n\"\""))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, read := range []func([]byte, string) ([]transfer.Row, error){transfer.ReadCSV, transfer.ReadNetBox, transfer.ReadAWS} {
			all, err := read(data, "net")
			if err != nil {
				if err.Error() == "" {
					t.Error("an error says nothing")
				}

				continue
			}
			if all, err = transfer.Place(all, ipamaudit.Inventory{}); err != nil {
				continue
			}
			var b bytes.Buffer
			if err := transfer.WriteCSV(&b, all); err != nil {
				t.Fatal(err)
			}
			again, err := transfer.ReadCSV(b.Bytes(), "net")
			if err != nil {
				t.Fatalf("%v in\n%s", err, b.String())
			}
			if diff := cmp.Diff(all, again, prefixes); diff != "" && len(all)+len(again) > 0 {
				t.Errorf("(-want +got):\n%s", diff)
			}
			transfer.Plan(transfer.Objects(all), ipamaudit.Inventory{})
		}
	})
}
