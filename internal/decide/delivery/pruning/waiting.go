package pruning

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/arbor-control/arbor/internal/identity"
)

// quotaText is in the error of an object that a quota has no room for.
const quotaText = "exceeded quota"

// takenTexts are in errors about something that only one object may have: those of the API server
// about ports and addresses, and those that admission webhooks usually return.
var takenTexts = []string{"already allocated", "already in use", "already defined", "already taken", "already claimed"}

// DeleteFirst returns the waiting tombstones of which one may have to be deleted before
// the apply of an object can succeed, the most likely first. message is why it failed.
// There are none if it failed for another reason.
func DeleteFirst(object identity.Identity, message string, waiting []identity.Identity) []identity.Identity {
	rank := rankTaken
	if strings.Contains(message, quotaText) {
		rank = rankQuota
	}
	var all []identity.Identity
	for _, id := range waiting {
		if rank(object, id, message) > 0 {
			all = append(all, id)
		}
	}
	slices.SortStableFunc(all, func(a, b identity.Identity) int {
		return cmp.Compare(rank(object, a, message), rank(object, b, message))
	})

	return all
}

// rankQuota is how likely a tombstone uses up the quota of an object, 1 for the most
// likely, 0 if it does not.
func rankQuota(object, id identity.Identity, _ string) int {
	switch {
	case id.Namespace != object.Namespace:
		return 0
	case isSameKind(object, id):
		return 1
	}

	return 2
}

// rankTaken is how likely a tombstone has something that only one object may have, 1 for
// the most likely, 0 if it does not.
func rankTaken(object, id identity.Identity, message string) int {
	isNamesake := id.Namespace == object.Namespace && id.Name == object.Name
	taken := isTaken(message)
	switch {
	case !isNamesake && mentions(message, id):
		return 1
	case !taken || !isSameKind(object, id):
		return 0
	case id.Namespace == object.Namespace:
		return 2
	}

	return 3
}

// A Waiting is a set of tombstones that are deleted later. To ask it costs as much as the
// error is long, however many there are.
type Waiting struct {
	kinds      map[schema.GroupKind]bool
	namespaces map[string]bool
	// names are NAMESPACE/NAME.
	names map[string]bool
}

// NewWaiting makes a set of tombstones.
func NewWaiting(all []identity.Identity) *Waiting {
	w := &Waiting{kinds: map[schema.GroupKind]bool{}, namespaces: map[string]bool{}, names: map[string]bool{}}
	for _, id := range all {
		w.kinds[schema.GroupKind{Group: id.Group, Kind: id.Kind}] = true
		w.namespaces[id.Namespace] = true
		if id.Namespace != "" {
			w.names[id.Namespace+"/"+id.Name] = true
		}
	}

	return w
}

// Hinders reports whether [NeedsPruning] returns any of the tombstones.
func (w *Waiting) Hinders(object identity.Identity, message string) bool {
	switch {
	case strings.Contains(message, quotaText):
		return w.namespaces[object.Namespace]
	case w.kinds[schema.GroupKind{Group: object.Group, Kind: object.Kind}] && isTaken(message):
		return true
	}

	return w.mentioned(object.Namespace+"/"+object.Name, message)
}

// mentioned reports whether a text names one of the tombstones, except a certain name.
func (w *Waiting) mentioned(except, text string) bool {
	for slash := range len(text) {
		if text[slash] != '/' {
			continue
		}
		from := slash
		for from > 0 && isNameByte(text[from-1]) {
			from--
		}
		for to := slash + 1; to <= min(len(text), slash+1+maxName); to++ {
			if to < len(text) && isNameByte(text[to]) {
				continue
			}
			if name := text[from:to]; name != except && w.names[name] {
				return true
			}
		}
	}

	return false
}

// maxName is how long the name of an object may be.
const maxName = 253

func isTaken(message string) bool {
	return slices.ContainsFunc(takenTexts, func(text string) bool { return strings.Contains(message, text) })
}

func isSameKind(a, b identity.Identity) bool { return a.Group == b.Group && a.Kind == b.Kind }

// mentions reports whether a text names an object by its namespace and name.
func mentions(text string, id identity.Identity) bool {
	if id.Namespace == "" {
		return false
	}
	name := id.Namespace + "/" + id.Name
	for rest := text; ; {
		at := strings.Index(rest, name)
		if at < 0 {
			return false
		}
		after := rest[at+len(name):]
		if (at == 0 || !isNameByte(rest[at-1])) && (after == "" || !isNameByte(after[0])) {
			return true
		}
		rest = after
	}
}

// isNameByte reports whether a byte can be a part of a longer name. A dot can end the text, and
// counts as no part of it.
func isNameByte(b byte) bool {
	return b == '-' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z'
}
