package ownership

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/engine/fields"
)

// verify returns why an object that was written is not what it should be: as it
// was, with the entries that were sent.
func verify(before, after *unstructured.Unstructured, sent fields.Entries) error {
	if at := difference(content(before), content(after), ""); at != "" {
		return refuse(Mutated, "admission changes %s of %s when only its managed fields are written", at, describe(before))
	}
	got, err := fields.Read(after.Object)
	if err != nil {
		return refuse(Altered, "cannot read what the managed fields of %s became: %w", describe(before), err)
	}
	if fields.Equal(got, kept(sent, got, before.GetAPIVersion())) {
		return nil
	}
	had, err := fields.Read(before.Object)
	switch {
	case len(got) == 0:
		return refuse(Untracked, "the server keeps no managed fields of %s: it is too large, something removes them, or an entry is in a version without a field that it has", describe(before))
	case err == nil && fields.Equal(got, had):
		return refuse(Ignored, "the server ignores the managed fields that it is given for %s", describe(before))
	default:
		return refuse(Altered, "the managed fields of %s became others than were written", describe(before))
	}
}

// kept are the entries without those in other versions that the server no longer has. It drops
// entries in a version that it does not know on every write.
func kept(sent, got fields.Entries, version string) fields.Entries {
	have := map[fields.Identity]bool{}
	for _, e := range got {
		have[e.Identity()] = true
	}

	return slices.DeleteFunc(slices.Clone(sent), func(e fields.Entry) bool {
		return e.APIVersion != version && !have[e.Identity()]
	})
}

// content is an object without what the server writes about a write.
func content(o *unstructured.Unstructured) map[string]any {
	all := maps.Clone(o.Object)
	if meta, ok := all["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		delete(meta, "managedFields")
		delete(meta, "resourceVersion")
		all["metadata"] = meta
	}

	return all
}

// difference is the path of something that differs, "" if nothing does. Of
// several it is the first.
func difference(a, b any, at string) string {
	left, ok := a.(map[string]any)
	right, too := b.(map[string]any)
	if !ok || !too {
		if reflect.DeepEqual(a, b) {
			return ""
		}

		return at
	}
	names := maps.Clone(left)
	maps.Copy(names, right)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if path := difference(left[name], right[name], join(at, name)); path != "" {
			return path
		}
	}

	return ""
}

func join(at, name string) string {
	if at == "" {
		return name
	}

	return fmt.Sprintf("%s.%s", at, name)
}
