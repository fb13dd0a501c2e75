package synthesis

import (
	"fmt"
	"strings"
	"testing"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	deliveryrules "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/krm"
)

// items are what a program writes, read as they are when a synthesis runs.
func items(t *testing.T, manifests ...string) []krm.Item {
	t.Helper()
	out, err := krm.Decode([]byte(`{"items":[` + strings.Join(manifests, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}

	return out.Items
}

func annotated(kind, name, annotation, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":"n","annotations":{%q:%q}},"data":{"key":"c2VjcmV0"}}`, kind, name, annotation, value)
}

func TestCheck(t *testing.T) {
	good := annotated("ConfigMap", "good", enov1.AnnotationReadinessGroup, "3")
	cases := map[string]struct {
		reason    string
		manifests []string
		want      string
		never     string
	}{
		"Valid": {reason: "There is nothing to report.", manifests: []string{good}},
		"Lenient": {
			reason:    "What Eno ignores does not fail a synthesis.",
			manifests: []string{annotated("ConfigMap", "a", enov1.AnnotationReplace, "True"), annotated("ConfigMap", "b", enov1.AnnotationReconcileInterval, "soon")},
		},
		"Group": {
			reason:    "The message has index, kind, name, annotation and value.",
			manifests: []string{good, annotated("ConfigMap", "bad", enov1.AnnotationReadinessGroup, "first")},
			want:      `cannot use the output: items[1]: ConfigMap n/bad: annotation eno.azure.io/readiness-group: cannot use "first": write a whole number`,
		},
		"Expression": {
			reason:    "So it has for CEL.",
			manifests: []string{annotated("ConfigMap", "bad", enov1.AnnotationReadiness, "self.")},
			want:      `items[0]: ConfigMap n/bad: annotation eno.azure.io/readiness: cannot use "self."`,
		},
		"Override": {
			reason:    "And for overrides.",
			manifests: []string{annotated("ConfigMap", "bad", enov1.AnnotationOverrides, `[{"path":"data.a"}]`)},
			want:      `items[0]: ConfigMap n/bad: annotation eno.azure.io/overrides[0].path: cannot use "data.a"`,
		},
		"Several": {
			reason: "The first five are named.",
			manifests: []string{
				annotated("A", "1", enov1.AnnotationDeletionGroup, "x"), annotated("A", "2", enov1.AnnotationDeletionGroup, "x"), annotated("A", "3", enov1.AnnotationDeletionGroup, "x"),
				annotated("A", "4", enov1.AnnotationDeletionGroup, "x"), annotated("A", "5", enov1.AnnotationDeletionGroup, "x"), annotated("A", "6", enov1.AnnotationDeletionGroup, "x"),
				annotated("A", "7", enov1.AnnotationDeletionGroup, "x"),
			},
			want: `; and 2 more`, never: "A n/6",
		},
		"Secret": {
			reason:    "Values of a Secret are not repeated.",
			manifests: []string{annotated("Secret", "bad", enov1.AnnotationReadiness, "self.data.key == 'c2VjcmV0' &&")},
			want:      "items[0]: Secret n/bad: annotation eno.azure.io/readiness", never: "c2VjcmV0",
		},
	}
	reader := deliveryrules.NewReader()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := check(reader, items(t, tc.manifests...))
			text := ""
			if err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, tc.want) || tc.want == "" && err != nil || tc.never != "" && strings.Contains(text, tc.never) {
				t.Errorf("%s\ncheck(...): %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
