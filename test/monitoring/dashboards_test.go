package monitoring_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A dashboard is what these tests look at in one.
type dashboard struct {
	Title         string  `json:"title"`
	UID           string  `json:"uid"`
	SchemaVersion int     `json:"schemaVersion"`
	Panels        []panel `json:"panels"`
	Templating    struct {
		List []variable `json:"list"`
	} `json:"templating"`
}

type variable struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Definition string `json:"definition"`
	Datasource source `json:"datasource"`
}

type panel struct {
	ID          int      `json:"id"`
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Datasource  source   `json:"datasource"`
	Grid        grid     `json:"gridPos"`
	Targets     []target `json:"targets"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
}

type target struct {
	Expr       string `json:"expr"`
	Legend     string `json:"legendFormat"`
	Datasource source `json:"datasource"`
}

type source struct {
	UID string `json:"uid"`
}

type grid struct {
	X, Y, W, H int
}

// chosen is the data source that the reader of a dashboard has chosen. Any other
// would be one of somebody's own.
var chosen = source{UID: "${datasource}"}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	all := map[string]dashboard{}
	for _, name := range files(t, "dashboards/*.json") {
		var d dashboard
		read(t, name, &d)
		if len(d.Panels) == 0 {
			t.Fatalf("there are no panels in %s", name)
		}
		all[filepath.Base(name)] = d
	}

	return all
}

// reference is a variable of Grafana's: $name or ${name}, with or without a
// format. A number is not one, but a group of label_replace.
var reference = regexp.MustCompile(`\$(?:\{([a-zA-Z_]\w*)(?::\w+)?\}|([a-zA-Z_]\w*))`)

// plain replaces the variables of an expression, and complains about those that
// the dashboard does not have.
func (d dashboard) plain(expr string) (string, error) {
	var unknown []string
	plain := reference.ReplaceAllStringFunc(expr, func(found string) string {
		m := reference.FindStringSubmatch(found)
		switch name := m[1] + m[2]; {
		case name == "__rate_interval", name == "__interval", name == "__range":
			return "5m"
		case slices.ContainsFunc(d.Templating.List, func(v variable) bool { return v.Name == name }):
			return ".*"
		default:
			unknown = append(unknown, name)

			return found
		}
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("there is no variable %q", unknown)
	}

	return plain, nil
}

// TestDashboardsAsk lets promtool read every expression, as if it were a rule, and looks for names
// and labels that are not served.
func TestDashboardsAsk(t *testing.T) {
	all := known(t)
	var g ruleGroup
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				expr, err := d.plain(q.Expr)
				if err != nil {
					t.Errorf("%s, %s: %v", file, p.Title, err)

					continue
				}
				parsed := parse(expr)
				for _, l := range legend.FindAllStringSubmatch(q.Legend, -1) {
					// A legend may show what is left of the labels, which is less.
					parsed.grouped = append(parsed.grouped, l[1])
				}
				for _, problem := range parsed.problems(all) {
					t.Errorf("%s, %s: %s", file, p.Title, problem)
				}
				g.Rules = append(g.Rules, rule{Record: fmt.Sprintf("query:%d", len(g.Rules)), Expr: expr})
			}
		}
	}
	if len(g.Rules) == 0 {
		t.Fatal("there are no queries")
	}

	g.Name = "queries"
	name := filepath.Join(t.TempDir(), "queries.yaml")
	write(t, name, ruleFile{Groups: []ruleGroup{g}})
	if out, err := promtool(t, "check", "rules", name); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
}

var legend = regexp.MustCompile(`\{\{ *(\w+) *\}\}`)

// values is the question behind a variable: label_values(selector, label).
var values = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

func TestVariablesAsk(t *testing.T) {
	all := known(t)
	for file, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			if v.Type == "datasource" {
				continue
			}
			m := values.FindStringSubmatch(v.Definition)
			if m == nil {
				t.Errorf("%s: cannot read the question of $%s: %q", file, v.Name, v.Definition)

				continue
			}
			expr, err := d.plain(m[1])
			if err != nil {
				t.Errorf("%s, $%s: %v", file, v.Name, err)

				continue
			}
			q := parse(expr)
			q.grouped = append(q.grouped, m[2])
			for _, problem := range q.problems(all) {
				t.Errorf("%s, $%s: %s", file, v.Name, problem)
			}
		}
	}
}

// TestDashboardsAreGeneric finds what only works where it was drawn.
func TestDashboardsAreGeneric(t *testing.T) {
	for _, name := range files(t, "dashboards/*.json") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(data, []byte("://")); at >= 0 {
			t.Errorf("%s names a host: %s", name, data[max(0, at-10):at+20])
		}
	}
	for file, d := range dashboards(t) {
		if d.UID == "" || d.Title == "" || d.SchemaVersion == 0 {
			t.Errorf("%s: uid %q, title %q, schemaVersion %d: want all of them, so that it is updated and not doubled", file, d.UID, d.Title, d.SchemaVersion)
		}
		for _, v := range d.Templating.List {
			if v.Type != "datasource" && v.Datasource != chosen {
				t.Errorf("%s: $%s asks %q", file, v.Name, v.Datasource.UID)
			}
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if q.Datasource != chosen || p.Datasource != chosen {
					t.Errorf("%s: %s asks %q and %q", file, p.Title, p.Datasource.UID, q.Datasource.UID)
				}
			}
		}
	}
}

func TestDashboardsAreNeat(t *testing.T) {
	for file, d := range dashboards(t) {
		for _, problem := range untidy(d.Panels) {
			t.Errorf("%s: %s", file, problem)
		}
	}
}

// untidy returns what a reader would stumble over.
func untidy(panels []panel) []string {
	const columns = 24
	var found []string
	for i, p := range panels {
		if p.Type != "row" && (p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0) {
			found = append(found, fmt.Sprintf("%q needs a title, a description, a unit and a query", p.Title))
		}
		if p.Grid.X < 0 || p.Grid.W <= 0 || p.Grid.H <= 0 || p.Grid.X+p.Grid.W > columns {
			found = append(found, fmt.Sprintf("%q does not fit the %d columns", p.Title, columns))
		}
		for _, other := range panels[:i] {
			if p.ID == other.ID {
				found = append(found, fmt.Sprintf("%q and %q have the same id", other.Title, p.Title))
			}
			if p.Grid.overlaps(other.Grid) {
				found = append(found, fmt.Sprintf("%q lies on %q", p.Title, other.Title))
			}
		}
	}

	return found
}

func (g grid) overlaps(o grid) bool {
	return g.X < o.X+o.W && o.X < g.X+g.W && g.Y < o.Y+o.H && o.Y < g.Y+g.H
}

func TestUntidy(t *testing.T) {
	good := func(id, x, y int) panel {
		p := panel{ID: id, Type: "stat", Title: strconv.Itoa(id), Description: "what it shows", Grid: grid{X: x, Y: y, W: 12, H: 4}, Targets: []target{{}}}
		p.FieldConfig.Defaults.Unit = "short"

		return p
	}
	cases := map[string]struct {
		reason string
		given  []panel
		want   []string
	}{
		"Neat": {
			reason: "Panels may touch, and a row has nothing but its title.",
			given:  []panel{{ID: 9, Type: "row", Grid: grid{Y: 8, W: 24, H: 1}}, good(1, 0, 0), good(2, 12, 0), good(3, 0, 4)},
		},
		"Overlap": {
			reason: "One of two that overlap is not seen.",
			given:  []panel{good(1, 0, 0), good(2, 11, 3)},
			want:   []string{`"2" lies on "1"`},
		},
		"Wide": {
			reason: "Grafana moves what does not fit.",
			given:  []panel{good(1, 13, 0)},
			want:   []string{`"1" does not fit the 24 columns`},
		},
		"SameID": {
			reason: "Links to a panel are by its id.",
			given:  []panel{good(1, 0, 0), good(1, 0, 4)},
			want:   []string{`"1" and "1" have the same id`},
		},
		"Bare": {
			reason: "A number without a unit and an explanation is a riddle.",
			given:  []panel{{Type: "stat", Title: "Riddle", Grid: grid{W: 1, H: 1}}},
			want:   []string{`"Riddle" needs a title, a description, a unit and a query`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, untidy(tc.given)); diff != "" {
				t.Errorf("%s\nuntidy(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
