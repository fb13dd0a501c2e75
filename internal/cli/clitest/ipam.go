package clitest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/identity"
)

// IPAM makes objects of the address API in a namespace, one per line:
//
//	pool NAME CIDR [parent=POOL] [strategy=Buddy] [defaultBlockSize=26] …
//	subnet POOL CIDR OWNER [name=NAME] [phase=Failed] [claim=NAME]
//	claim NAME POOL SIZE|CIDR [clusterID=OWNER] [phase=Bound] [at=RFC3339]
//	poolclaim NAME PARENT SIZE [phase=Bound]
func IPAM(namespace, text string) []map[string]any {
	var out []map[string]any

	for line := range strings.Lines(strings.TrimSpace(text)) {
		if words := strings.Fields(line); len(words) > 0 {
			out = append(out, Parcel(namespace, words))
		}
	}

	return out
}

// Parcel makes one object of the words of a line.
func Parcel(namespace string, words []string) map[string]any {
	metadata := map[string]any{"name": words[1]}
	if namespace != "" {
		metadata["namespace"] = namespace
	}

	spec, status, kind := map[string]any{}, map[string]any{}, ""

	switch words[0] {
	case "pool":
		kind, spec["cidr"] = v1alpha1.SubnetPoolKind, words[2]
	case "subnet":
		metadata["name"] = words[1] + "-" + strings.NewReplacer(".", "-", "/", "-", ":", "-").Replace(words[2])
		metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
		kind, spec["poolRef"], spec["cidr"], spec["clusterID"] = v1alpha1.SubnetKind, words[1], words[2], words[3]
		status["phase"] = string(v1alpha1.SubnetAllocated)
	case "claim":
		kind, spec["poolRef"], spec["clusterID"] = v1alpha1.SubnetClaimKind, words[2], words[1]
		if n, err := strconv.Atoi(words[3]); err == nil {
			spec["blockSize"] = int64(n)
		} else {
			spec["requestedCIDR"] = words[3]
		}
	case "poolclaim":
		n, _ := strconv.Atoi(words[3])
		kind, spec["parentPoolRef"], spec["desiredBlockSize"] = v1alpha1.SubnetPoolClaimKind, words[2], int64(n)
	}

	for _, w := range words {
		if key, value, ok := strings.Cut(w, "="); ok {
			set(metadata, spec, status, key, value)
		}
	}

	metadata["uid"] = fmt.Sprint("uid-", metadata["name"])

	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": metadata, "spec": spec, "status": status,
	}
}

func set(metadata, spec, status map[string]any, key, value string) {
	switch n, err := strconv.Atoi(value); {
	case key == "phase":
		status["phase"] = value
	case key == "name":
		metadata["name"] = value
	case key == "at":
		metadata["creationTimestamp"] = value
	case key == "gone":
		metadata["deletionTimestamp"] = value
	case key == "claim":
		spec["claimRef"] = map[string]any{"name": value, "uid": "uid-" + value}
	case key == "label":
		metadata["labels"] = map[string]any{v1alpha1.ParentLabel: value}
	case err == nil:
		spec[key] = int64(n)
	default:
		spec[key] = value
	}
}

// Manifests are objects as a file holds them.
func Manifests(t *testing.T, objects ...map[string]any) string {
	t.Helper()

	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}

// Serving lists the objects that a query asks for, of its kind only.
func Serving(objects ...map[string]any) source.Lister {
	return func(ctx context.Context, q source.Query) ([]map[string]any, error) {
		var out []map[string]any

		for _, o := range objects {
			if strings.EqualFold(identity.RefOf(o).Kind+"s", q.Resource.Resource) {
				out = append(out, o)
			}
		}

		return Holding(out...)(ctx, q)
	}
}

// Plain is a terminal without colour that knows Unicode and has 80 columns.
func Plain(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("COLUMNS", "")
}

// Crowd is a pool with many Subnets, every second /28 of it.
func Crowd(n int) []map[string]any {
	out := IPAM("default", "pool p 10.0.0.0/8")
	for i := range n {
		out = append(out, Parcel("default", []string{"subnet", "p", fmt.Sprintf("10.%d.%d.%d/28", i>>11, i>>3&255, i&7<<5), fmt.Sprint("c", i)}))
	}

	return out
}
