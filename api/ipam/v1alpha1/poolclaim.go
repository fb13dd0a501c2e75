package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// PoolClaimLabelValue returns the value of PoolClaimLabel for a SubnetPoolClaim: its
// name, or a hash of a name that is too long for a label.
func PoolClaimLabelValue(name string) string { return LabelValue("", name) }

// LabelValue returns a prefix followed by a name. If that is not a valid label value, the
// name is replaced by a hash.
func LabelValue(prefix, name string) string {
	const digits = 32
	if len(validation.IsValidLabelValue(prefix+name)) == 0 {
		return prefix + name
	}
	sum := sha256.Sum256([]byte(name))

	return prefix + hex.EncodeToString(sum[:])[:digits]
}

// PoolClaimOf returns the name of the SubnetPoolClaim in the label of a SubnetClaim or a
// SubnetPool, "" if there is none. If the label has a hash, it is the object's own name.
//
// A label can be edited, and a SubnetPoolClaim deletes what was created for it. So the label
// is used only on objects whose name is that of the SubnetPoolClaim, or begins with it.
func PoolClaimOf(o metav1.Object) string {
	value := o.GetLabels()[PoolClaimLabel]
	switch {
	case value == "":
		return ""
	case value == PoolClaimLabelValue(o.GetName()):
		return o.GetName()
	case strings.HasPrefix(o.GetName(), value+"-"): // former versions added random characters
		return value
	}

	return ""
}
