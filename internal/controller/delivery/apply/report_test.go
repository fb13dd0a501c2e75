package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/engine/fields"
)

// held is what a manager has.
func held(manager string, names ...string) fields.Move {
	set := &fieldpath.Set{}
	for _, name := range names {
		set.Insert(fieldpath.MakePathOrDie("spec", name))
	}

	return fields.Move{From: fields.Identity{Manager: manager}, Fields: set}
}

func TestFindings(t *testing.T) {
	cases := map[string]struct {
		reason string
		given  finding
		want   string
		kind   string
	}{
		"Migrated": {
			reason: "What was put right is no warning.", kind: corev1.EventTypeNormal,
			given: finding{enov1.OwnershipMigrated, "eno owns what old had", reasonMigrated, []fields.Move{held("old", "a", "b")}},
			want:  "eno owns what old had: spec.a, spec.b",
		},
		"Failed": {
			reason: "Fields come first: the server may have much to say.", kind: corev1.EventTypeWarning,
			given: finding{enov1.OwnershipFailed, "no", reasonFailed, []fields.Move{held("old", "a"), held("older", "b"), held("old", "c")}},
			want:  "spec.a, spec.b, spec.c of old, older could not be moved: no",
		},
		"Unread": {
			reason: "Where nothing is known of fields, nothing is said of them.", kind: corev1.EventTypeWarning,
			given: finding{state: enov1.OwnershipFailed, message: "cannot read it", reason: reasonFailed}, want: "cannot read it",
		},
		"Nobodys": {
			reason: "A field without an owner is taken from no manager, and one of two owners is one field.", kind: corev1.EventTypeWarning,
			given: finding{enov1.OwnershipSplit, "held", reasonSplit, []fields.Move{held("", "x"), held("old", "a"), held("older", "a")}},
			want:  "held: spec.a",
		},
		"Many": {
			reason: "An event is no list.", kind: corev1.EventTypeWarning,
			given: finding{enov1.OwnershipSplit, "held", reasonContested, []fields.Move{held("old", "a", "b", "c", "d", "e", "f", "g")}},
			want:  "held: spec.a, spec.b, spec.c, spec.d, spec.e and 2 more",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, kind := tc.given.note(), tc.given.eventType(); got != tc.want || kind != tc.kind {
				t.Errorf("%s\ngot  %s %q\nwant %s %q", tc.reason, kind, got, tc.kind, tc.want)
			}
		})
	}
}
