package health

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Waits counts the objects of a kind of which a condition is not true. Each waits
// since the condition became what it is, or since the object exists.
func Waits(kind, condition string, objects []map[string]any) Backlog {
	b := Backlog{Kind: kind, Total: len(objects)}
	for _, content := range objects {
		o := unstructured.Unstructured{Object: content}
		status, message, since := conditionOf(o, condition)
		if status == string(metav1.ConditionTrue) {
			continue
		}
		b.Waiting++
		if b.Waiting == 1 || since.Time.Before(b.Oldest) {
			b.Oldest, b.Why, b.First = since.Time, message, o.GetName()
			if ns := o.GetNamespace(); ns != "" {
				b.First = ns + "/" + o.GetName()
			}
		}
	}

	return b
}

func conditionOf(o unstructured.Unstructured, wanted string) (status, message string, since metav1.Time) {
	since = o.GetCreationTimestamp()
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		c, ok := item.(map[string]any)
		if !ok || c["type"] != wanted {
			continue
		}
		status, _ = c["status"].(string)
		message, _ = c["message"].(string)
		if text, ok := c["lastTransitionTime"].(string); ok {
			_ = since.UnmarshalQueryParameter(text) // else it is as good as new
		}
	}

	return status, message, since
}
