package owners

import (
	"fmt"
	"slices"
	"strings"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
)

// reasonSplit is of a finding: a manager cannot remove what it applied.
const reasonSplit = "SplitOwnership"

// Splits finds what each manager could not remove. Of most objects the entries
// alone tell that there is nothing: nobody applies, or nobody else is there.
func Splits(obj map[string]any, within []fields.Scope) []show.Finding {
	entries, _ := fields.Read(obj) // what cannot be read holds nothing back
	entries = slices.DeleteFunc(entries.Merge(), func(e fields.Entry) bool { return e.Subresource != "" })
	applies := func(e fields.Entry) bool { return e.Operation == fields.Apply }

	if len(entries) < 2 || !slices.ContainsFunc(entries, applies) {
		return nil
	}

	var out []show.Finding

	tree := fields.New(obj, entries)

	for _, e := range entries {
		for _, scope := range within {
			if applies(e) && e.Fields != nil {
				out = append(out, splitsOf(identity.RefOf(obj), tree, scope, e.Manager)...)
			}
		}
	}

	return out
}

// splitsOf finds the items of a scope that a manager could not remove.
func splitsOf(ref identity.Ref, tree *fields.Tree, within fields.Scope, manager string) []show.Finding {
	var out []show.Finding

	for _, r := range tree.Removals(manager, nil, Outside(tree, []fields.Scope{within}, manager)) {
		if isSplit(r, within) {
			out = append(out, splitFinding(ref, r, manager))
		}
	}

	return out
}

// isSplit says whether an item is held back by others. Something that stays
// because another manager applies all of it is shared, as server-side apply
// means it: each of them can be asked. An update is not taken back.
func isSplit(r fields.Removal, within fields.Scope) bool {
	if !within.Matches(r.Path) || r.Path[len(r.Path)-1].FieldName != nil || len(r.Because) == 0 {
		return false
	}

	return r.Fate == fields.Partial ||
		r.Fate == fields.Kept && slices.ContainsFunc(r.Because, func(h fields.Holder) bool { return h.Operation == fields.Update })
}

func splitFinding(ref identity.Ref, r fields.Removal, manager string) show.Finding {
	const most = 3

	var names []string

	blocked := &show.Blocked{Manager: manager, Fate: r.Fate}
	for _, h := range r.Because {
		names = append(names, h.String())
		blocked.By = append(blocked.By, h.Identity)
	}

	who, path := strings.Join(names, " and "), fields.FormatPath(r.Path)
	message := fmt.Sprintf("%s applies it and cannot remove it: it would stay, because of %s", manager, who)

	if goes := Below(r.Path, r.Removed); r.Fate == fields.Partial {
		if more := len(goes) - most; more > 0 {
			goes = append(goes[:most:most], fmt.Sprintf("%d more", more))
		}

		message = fmt.Sprintf("%s applies it and cannot remove it: only %s would go, and the rest stay, because of %s; the server refuses that if anything that goes is required",
			manager, strings.Join(goes, ", "), who)
	}

	return show.Finding{
		Severity: show.SeverityWarning, Object: ref, Reason: reasonSplit, Field: path, Message: message, Blocked: blocked,
		Fix: fmt.Sprintf("see arbor fields plan %s/%s%s --scope '%s' --to %s", strings.ToLower(ref.Kind), ref.Name, inNamespace(ref), path, manager),
	}
}

// inNamespace is the flag that says where an object is.
func inNamespace(ref identity.Ref) string {
	if ref.Namespace == "" {
		return ""
	}

	return " -n " + ref.Namespace
}
