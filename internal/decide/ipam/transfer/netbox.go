package transfer

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
)

// container is the status of a NetBox prefix that contains other prefixes.
const container = "container"

// WriteNetBox writes rows as NetBox imports prefixes. Pools are containers. The
// description has what NetBox has no column for.
func WriteNetBox(w io.Writer, rows []Row) error {
	lines := [][]string{{"prefix", "status", "description"}}
	for _, r := range rows {
		status, about := container, []string{"namespace=" + r.Namespace, "pool=" + r.Pool}
		if r.Parent != "" {
			about = append(about, "parent="+r.Parent)
		}
		if !r.IsPool() {
			status, about = "active", append(about, "clusterID="+r.ClusterID)
		}
		if r.Claim != "" {
			about = append(about, "claim="+r.Claim)
		}
		lines = append(lines, []string{r.CIDR.String(), status, strings.Join(about, " ")})
	}

	return csv.NewWriter(w).WriteAll(lines)
}

// ReadNetBox reads NetBox's export of prefixes. What the description does not contain is derived
// from it and from the prefix; the pool of a block may then be empty, see [Place].
func ReadNetBox(data []byte, namespace string) ([]Row, error) {
	return readTable(data, []string{"prefix", "status"}, func(t *table) (Row, error) {
		said := map[string]string{}
		for word := range strings.FieldsSeq(t.get("description")) {
			if key, value, ok := strings.Cut(word, "="); ok {
				said[key] = value
			}
		}
		r := Row{Namespace: said["namespace"], Pool: said["pool"], Parent: said["parent"], ClusterID: said["clusterID"], Claim: said["claim"]}
		if r.Namespace == "" {
			r.Namespace = namespace
		}
		var err error
		if r.CIDR, err = parsePrefix(t.where(), "prefix", t.get("prefix")); err != nil {
			return r, err
		}
		isPool, err := netboxPool(t)
		if err != nil {
			return r, err
		}
		name := fmt.Sprintf("netbox-%s", slug(r.CIDR.String()))
		if isPool && r.Pool == "" {
			r.Pool = name
		}
		if !isPool && r.ClusterID == "" {
			r.ClusterID = firstOf(slug(t.get("tenant")), name)
		}

		err = checkPlaced(&r, t.where())

		return r, err
	})
}

func netboxPool(t *table) (bool, error) {
	switch status := strings.ToLower(t.get("status")); status {
	case container:
		return true, nil
	case "active", "reserved", "deprecated":
		return false, nil
	default:
		return false, &ParseError{t.where(), "status", status, "it is not a status of a NetBox prefix", "use container for pools, and active, reserved or deprecated for blocks"}
	}
}

// firstOf is the first text that is not empty.
func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}

	return ""
}

// checkPlaced checks a row whose pool is found later.
func checkPlaced(r *Row, where string) error {
	named := *r
	named.Pool = firstOf(r.Pool, "later")

	return named.check(where)
}
