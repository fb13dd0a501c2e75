package rehearsal

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show/owners"
)

// DiffView is what arbor compositions plan prints for programs.
type DiffView struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Synthesis is the one whose manifests were compared, and Role what it is to
	// the composition. There is none for manifests that were rendered.
	Synthesis string       `json:"synthesis"`
	Role      string       `json:"role,omitempty"`
	Objects   []ObjectDiff `json:"objects"`
	// Summary counts objects by what becomes of them.
	Summary map[Change]int `json:"summary"`
}

// An ObjectDiff is what the next apply does with one object.
type ObjectDiff struct {
	Object identity.Ref `json:"object"`
	Change Change       `json:"change"`
	// Diff is unified, "" if there is no difference.
	Diff string `json:"diff,omitempty"`
	// Blocked are the things that the apply no longer names and that do not go.
	Blocked []owners.RemovalView `json:"blocked"`
	Notes   []string             `json:"notes"`
	// Error is why it is refused, or why it is not known.
	Error string `json:"error,omitempty"`

	// Manager is the field manager of the delivery.
	Manager string `json:"-"`
}

func (v ObjectDiff) noted(text string) ObjectDiff {
	v.Notes = append(v.Notes, text)

	return v
}

func (v ObjectDiff) ignored(why string) ObjectDiff {
	v.Change = ChangeIgnored

	return v.noted("it is left alone: " + why)
}

// unknown is about an object that the cluster did not tell about. verb is the
// right that it takes.
func (v ObjectDiff) unknown(verb string, err error) ObjectDiff {
	v.Change, v.Error = ChangeUnknown, err.Error()
	if verb != "" && apierrors.IsForbidden(err) {
		v.Error = "no right to " + verb + " it: " + v.Error
	}

	return v
}

// refusedBy tells an answer of the server about the object from one about who
// asks, and from none. Admission refuses with the words of the missing right's
// code, but not in its words.
func (v ObjectDiff) refusedBy(verb string, err error) ObjectDiff {
	missing := apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot ")

	if apierrors.ReasonForError(err) == "" || missing || apierrors.IsUnauthorized(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) {
		return v.unknown(verb, err)
	}

	v.Change, v.Error = ChangeRefused, err.Error()

	return v
}

// compared is about an object as it is and as it would be; nil is none.
func (v ObjectDiff) compared(live, after map[string]any) ObjectDiff {
	a, b := contentOf(live), contentOf(after)
	if v.Object.Kind == "Secret" && v.Object.APIVersion == "v1" {
		hideSecrets(a, b)
	}

	text, err := unified(v.Object, a, b)

	switch {
	case err != nil:
		return v.unknown("", err)
	case text == "":
		return v
	case live == nil:
		v.Change = ChangeNew
	case after == nil:
		v.Change = ChangeDeleted
	default:
		v.Change = ChangeSome
	}

	v.Diff = text

	return v
}

// diffContext is how many lines are shown around a change.
const diffContext = 3

// unified compares two states of an object, as kubectl diff does.
func unified(ref identity.Ref, a, b map[string]any) (string, error) {
	before, err := yamlLines(a)
	if err != nil {
		return "", err
	}

	after, err := yamlLines(b)
	if err != nil {
		return "", err
	}

	name := strings.ReplaceAll(ref.APIVersion, "/", ".") + "." + ref.Kind + "." + ref.Namespace + "." + ref.Name

	return unifiedDiff("LIVE/"+name, "MERGED/"+name, before, after, diffContext), nil
}

// yamlLines are none for an object that is not there.
func yamlLines(obj map[string]any) ([]string, error) {
	if obj == nil {
		return nil, nil
	}

	data, err := yaml.Marshal(obj)

	return slices.Collect(strings.Lines(string(data))), err
}

// With returns the view with one more object.
func (v DiffView) With(d ObjectDiff) DiffView {
	v.Objects = append(v.Objects, d)
	v.Summary[d.Change]++

	return v
}

// Blocked is how many removals are.
func (v DiffView) Blocked() int {
	n := 0
	for _, d := range v.Objects {
		n += len(d.Blocked)
	}

	return n
}

// Text is the change in words.
func (c Change) Text() string {
	if c == ChangeIgnored {
		return "left alone"
	}

	return strings.ToLower(string(c))
}
