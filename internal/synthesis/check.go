package synthesis

import (
	"encoding/json"
	"fmt"
	"strings"

	deliveryrules "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/krm"
	"github.com/arbor-control/arbor/internal/kube"
)

// maxInvalid is how many invalid settings an error names.
const maxInvalid = 5

// check returns an error that names the manifests whose settings cannot be used. They
// are rejected as a whole: the program has to be repaired, and what it wrote before
// stays as it is.
func check(reader *deliveryrules.Reader, items []krm.Item) error {
	var all []string
	for i, item := range items {
		for _, err := range reader.Check(item.Manifest) {
			all = append(all, fmt.Sprintf("items[%d]: %s: %s", i, item, discreet(err, item)))
		}
	}
	if len(all) == 0 {
		return nil
	}
	if n := len(all) - maxInvalid; n > 0 {
		all = append(all[:maxInvalid], fmt.Sprintf("and %d more", n))
	}

	return fmt.Errorf("cannot use the output: %s", strings.Join(all, "; "))
}

// discreet is an error about a manifest, without the values of a Secret.
func discreet(err error, item krm.Item) error {
	var object map[string]any
	if item.Kind == "Secret" && json.Unmarshal([]byte(item.Manifest), &object) == nil {
		return kube.Discreet(err, object)
	}

	return err
}
