package monitoring_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
)

// matched is a label's value, or several, in a selector.
var matched = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"([^"]*)"`)

// chosenValues returns the values that rules and dashboards select, by label.
func chosenValues(t *testing.T) map[string][]string {
	t.Helper()
	var exprs []string
	for _, r := range rules(t) {
		exprs = append(exprs, r.Expr)
	}
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				exprs = append(exprs, q.Expr)
			}
		}
	}
	all := map[string][]string{}
	for _, e := range exprs {
		for _, m := range matched.FindAllStringSubmatch(e, -1) {
			if !reference.MatchString(m[2]) {
				all[m[1]] = append(all[m[1]], strings.Split(m[2], "|")...)
			}
		}
	}

	return all
}

// sources returns the code of the folders that a pattern names.
func sources(t *testing.T, pattern string) string {
	t.Helper()
	var all strings.Builder
	folders, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(folders) == 0 {
		t.Fatalf("cannot find %s: %v", pattern, err)
	}
	for _, folder := range folders {
		in := os.DirFS(folder)
		err := fs.WalkDir(in, ".", func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := fs.ReadFile(in, path)
			all.Write(data)

			return err
		})
		if err != nil {
			t.Fatalf("cannot read the code in %s: %v", folder, err)
		}
	}

	return all.String()
}

// TestValuesAreWritten finds selectors that select nothing, because no code
// gives that value to a label.
func TestValuesAreWritten(t *testing.T) {
	code := sources(t, "internal") + sources(t, "api") + fmt.Sprintf("%q", admissionmetrics.WebhookRejectionCallingWebhookError)
	for label, values := range chosenValues(t) {
		for _, v := range values {
			if !strings.Contains(code, `"`+v+`"`) {
				t.Errorf("no series has %s with the value %q", label, v)
			}
		}
	}
}

var named = regexp.MustCompile(`Named\("([^"]+)"\)`)

// TestQueuesAreWatched finds controllers of the parts whose queue no alert checks.
func TestQueuesAreWatched(t *testing.T) {
	there := map[string]bool{}
	for _, pattern := range []string{"internal/controller/subnet*", "internal/controller/po*", "internal/controller/sy*", "internal/controller/delivery", "internal/webhook/serving"} {
		for _, m := range named.FindAllStringSubmatch(sources(t, pattern), -1) {
			there[m[1]] = true
		}
	}
	watched := chosenValues(t)
	// Leases and webhooks have names, too.
	watched["name"] = slices.DeleteFunc(watched["name"], func(name string) bool {
		return name == "arbor-manager" || name == "arbor-scheduler" || strings.HasSuffix(name, ".admission.arbor")
	})
	for _, label := range []string{"name", "controller"} {
		got := slices.Compact(slices.Sorted(slices.Values(watched[label])))
		if diff := cmp.Diff(slices.Sorted(maps.Keys(there)), got); diff != "" {
			t.Errorf("controllers that are selected by the label %s: -want, +got:\n%s", label, diff)
		}
	}
}
