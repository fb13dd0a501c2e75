package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/internal/identity"
)

// Severity of a finding.
type Severity string

// Errors are what admission refuses; warnings are what it lets pass.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Reasons of findings beside those of the API and of the schema.
const (
	reasonUnreadable   = "Unreadable"
	reasonSyntax       = "InvalidSyntax"
	reasonDuplicateKey = "DuplicateKey"
	reasonUnserved     = "VersionNotServed"
	reasonKind         = "KindUnknown"
	reasonUndecodable  = "Undecodable"
	reasonSameObject   = "DuplicateObject"
	reasonWarning      = "Warning"
)

// An ObjectRef says where to find an object, for people and programs that read the
// output. Two of them can be about one object: compare identities.
type ObjectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

func refOf(obj map[string]any) ObjectRef {
	u := unstructured.Unstructured{Object: obj}

	return ObjectRef{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// path is namespace/name, or what of it is known.
func (r ObjectRef) path() string {
	if r.Namespace == "" {
		return r.Name
	}

	return r.Namespace + "/" + r.Name
}

func (r ObjectRef) identity() identity.Identity {
	return identity.New(r.APIVersion, r.Kind, r.Namespace, r.Name)
}

func (r ObjectRef) String() string {
	if r.Name == "" {
		return r.Kind
	}

	return r.identity().String()
}

// A Finding is one thing that is wrong with one object.
type Finding struct {
	Severity Severity  `json:"severity"`
	Object   ObjectRef `json:"object"`
	// Reason in one word, for programs.
	Reason string `json:"reason"`
	// Field path, empty for the object as a whole.
	Field string `json:"field"`
	// Value of the field, if there is one to show.
	Value string `json:"value"`
	// Message for people.
	Message string `json:"message"`
	// Fix says how to mend it, if that is known.
	Fix string `json:"fix"`
	// Blocked says who stands in whose way, if that is what is wrong.
	Blocked *Blocked `json:"blocked,omitempty"`
}

// text is the message and the fix.
func (f Finding) text() string { return withFix(f.Message, f.Fix) }

func withFix(message, fix string) string {
	if fix == "" {
		return message
	}

	return message + " (" + fix + ")"
}

// A Located finding knows where it is written.
type Located struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Finding        //nolint:embeddedstructfieldcheck // this is the order in which JSON shows them
}

// line is the finding as compilers write theirs.
func (l Located) line(s style) string {
	where := clean(l.File)
	if l.Line > 0 {
		where = fmt.Sprintf("%s:%d", where, l.Line)
	}

	return s.paint(bold, where+":") + " " + s.severity(l.Severity, string(l.Severity)+":") + " " + clean(l.sentence())
}

// tally counts findings by severity.
func tally[T any](all []T, severity func(T) Severity) (errs, warnings int) {
	for _, f := range all {
		if severity(f) == SeverityError {
			errs++
		} else {
			warnings++
		}
	}

	return errs, warnings
}

// sum says how many findings there are.
func sum(errs, warnings int, s style) string {
	worst := SeverityWarning
	if errs > 0 {
		worst = SeverityError
	}

	return s.severity(worst, count(errs, "error")+", "+count(warnings, "warning"))
}

// findingTable has one row per finding. Colour is left out, because it would
// count as width.
func findingTable(out io.Writer, all []Finding) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "KIND\tNAMESPACE\tNAME\tREASON\tFIELD\tPROBLEM")

	for _, f := range all {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n",
			clean(f.Object.Kind), clean(f.Object.Namespace), clean(f.Object.Name), f.Reason, clean(f.Field), clean(f.text()))
	}

	return w.Flush()
}
