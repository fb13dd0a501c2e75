package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// awsIPAM is what `aws ec2 get-ipam-pool-cidrs` and `get-ipam-pool-allocations` print,
// each alone or both in one object.
//
//nolint:tagliatelle // the names are those of AWS
type awsIPAM struct {
	Cidrs       []awsCidr       `json:"IpamPoolCidrs,omitempty"`
	Allocations []awsAllocation `json:"IpamPoolAllocations,omitempty"`
}

//nolint:tagliatelle // the names are those of AWS
type awsCidr struct {
	Cidr  string `json:"Cidr"`
	State string `json:"State,omitempty"`
}

//nolint:tagliatelle // the names are those of AWS
type awsAllocation struct {
	Cidr         string `json:"Cidr"`
	ID           string `json:"IpamPoolAllocationId,omitempty"`
	Description  string `json:"Description,omitempty"`
	ResourceID   string `json:"ResourceId,omitempty"`
	ResourceType string `json:"ResourceType,omitempty"`
}

// awsPool is the resource type of a block that a pool was made of.
const awsPool = "ipam-pool"

// WriteAWS writes rows as AWS prints its pools: roots are CIDRs, child pools and blocks
// are allocations.
func WriteAWS(w io.Writer, rows []Row) error {
	out := awsIPAM{Cidrs: []awsCidr{}, Allocations: []awsAllocation{}}
	for _, r := range rows {
		switch {
		case r.IsPool() && r.Parent == "":
			out.Cidrs = append(out.Cidrs, awsCidr{Cidr: r.CIDR.String(), State: "provisioned"})
		case r.IsPool():
			out.Allocations = append(out.Allocations, awsAllocation{Cidr: r.CIDR.String(), ResourceID: r.Pool, ResourceType: awsPool, Description: "parent=" + r.Parent})
		default:
			a := awsAllocation{Cidr: r.CIDR.String(), ResourceID: r.ClusterID, ResourceType: "custom"}
			if r.Claim != "" {
				a.Description = "claim=" + r.Claim
			}
			out.Allocations = append(out.Allocations, a)
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")

	return e.Encode(out)
}

// ReadAWS reads the output of AWS. Names are made of IDs and CIDRs; the pool of a block is
// empty, see [Place].
func ReadAWS(data []byte, namespace string) ([]Row, error) {
	var in awsIPAM
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&in); err != nil {
		return nil, jsonError(data, err)
	}
	if in.Cidrs == nil && in.Allocations == nil {
		return nil, &ParseError{"line 1", "", "", "there is neither IpamPoolCidrs nor IpamPoolAllocations", "give the output of aws ec2 get-ipam-pool-cidrs or get-ipam-pool-allocations"}
	}
	var rows []Row
	for i, c := range in.Cidrs {
		where := fmt.Sprintf("IpamPoolCidrs[%d]", i)
		if c.State != "" && c.State != "provisioned" {
			continue
		}
		prefix, err := parsePrefix(where, "Cidr", c.Cidr)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Row{Namespace: namespace, Pool: "aws-" + slug(c.Cidr), CIDR: prefix})
	}
	for i, a := range in.Allocations {
		row, err := a.row(fmt.Sprintf("IpamPoolAllocations[%d]", i), namespace)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}

	return rows, nil
}

func (a *awsAllocation) row(where, namespace string) (Row, error) {
	r := Row{Namespace: namespace}
	var err error
	if r.CIDR, err = parsePrefix(where, "Cidr", a.Cidr); err != nil {
		return r, err
	}
	id := firstOf(slug(a.ResourceID), slug(a.ID), "aws-"+slug(a.Cidr))
	if a.ResourceType == awsPool {
		r.Pool = id
		r.Parent, _ = strings.CutPrefix(a.Description, "parent=")
		if !strings.HasPrefix(a.Description, "parent=") {
			r.Parent = ""
		}
	} else {
		r.ClusterID = id
		if claim, ok := strings.CutPrefix(a.Description, "claim="); ok {
			r.Claim = claim
		}
	}

	err = checkPlaced(&r, where)

	return r, err
}

// jsonError reports the line in which JSON is invalid.
func jsonError(data []byte, err error) error {
	offset := int64(len(data))
	message := err.Error()
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = bad.Offset
	}
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset, message = bad.Offset, fmt.Sprintf("%s is a %s, not a %s", bad.Field, bad.Value, bad.Type)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		message = "it ends too early"
	}
	line := 1 + bytes.Count(data[:min(max(offset, 0), int64(len(data)))], []byte("\n"))

	return &ParseError{fmt.Sprintf("line %d", line), "", "", message, "write it as JSON"}
}
