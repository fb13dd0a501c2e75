package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// estate makes objects of the address API in a namespace, one per line:
//
//	pool NAME CIDR [parent=POOL] [strategy=Buddy] [defaultBlockSize=26] …
//	subnet POOL CIDR OWNER [name=NAME] [phase=Failed] [claim=NAME]
//	claim NAME POOL SIZE|CIDR [clusterID=OWNER] [phase=Bound] [at=RFC3339]
//	poolclaim NAME PARENT SIZE [phase=Bound]
func estate(namespace, text string) []map[string]any {
	var out []map[string]any

	for line := range strings.Lines(strings.TrimSpace(text)) {
		if words := strings.Fields(line); len(words) > 0 {
			out = append(out, parcel(namespace, words))
		}
	}

	return out
}

func parcel(namespace string, words []string) map[string]any {
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

// manifests are objects as a file holds them.
func manifests(t *testing.T, objects ...map[string]any) string {
	t.Helper()

	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}

// serving lists the objects that a query asks for, of its kind only.
func serving(objects ...map[string]any) lister {
	return func(ctx context.Context, q query) ([]map[string]any, error) {
		var out []map[string]any

		for _, o := range objects {
			if strings.EqualFold(refOf(o).Kind+"s", q.resource.Resource) {
				out = append(out, o)
			}
		}

		return holding(out...)(ctx, q)
	}
}

// plain is a terminal without colour that knows Unicode and has 80 columns.
func plain(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("COLUMNS", "")
}

// poolsOf is the command with everything below it, on objects in memory.
func poolsOf(list lister) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command { return buildPools(s, cluster(list), nil) }
}

// noCIDR is what the controller says of a CIDR that is none.
func noCIDR(text string) string {
	return (&stock{SubnetPool: &v1alpha1.SubnetPool{Spec: v1alpha1.SubnetPoolSpec{CIDR: text}}}).unusable()
}

// crowd is a pool with many Subnets, every second /28 of it.
func crowd(n int) []map[string]any {
	out := estate("default", "pool p 10.0.0.0/8")
	for i := range n {
		out = append(out, parcel("default", []string{"subnet", "p", fmt.Sprintf("10.%d.%d.%d/28", i>>11, i>>3&255, i&7<<5), fmt.Sprint("c", i)}))
	}

	return out
}
