package sbom_test

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/tools/release/sbom"
)

func TestWrite(t *testing.T) {
	file, err := cluster.Binary("arbor-manager", "ARBOR_MANAGER")
	if err != nil {
		t.Fatal(err)
	}
	p := sbom.Program{
		Name: "test", Version: "v1.2.3", File: file, Created: time.Unix(1700000000, 0).UTC(), License: "Apache-2.0",
		Licences: func(string) []string { return []string{"MIT"} },
	}
	var one, two bytes.Buffer
	for _, b := range []*bytes.Buffer{&one, &two} {
		if err := p.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if one.String() != two.String() {
		t.Error("the same program has two SBOMs")
	}

	// The schema of CycloneDX 1.6 requires these.
	var d struct {
		BOMFormat, SpecVersion, SerialNumber string
		Version                              int
		Metadata                             struct {
			Timestamp time.Time
			Component struct {
				Type, Name, Version, PURL string
				Hashes                    []struct{ Alg, Content string }
			}
		}
		Components []struct {
			Type, Name, Version, PURL string
			Ref                       string `json:"bom-ref"`
			Licenses                  []struct{ License struct{ ID string } }
		}
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	if err := json.Unmarshal(one.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if d.BOMFormat != "CycloneDX" || d.SpecVersion != "1.6" || d.Version != 1 || d.Metadata.Component.Type != "application" || d.Metadata.Component.Name != "test" ||
		!regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(d.SerialNumber) ||
		!regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(d.Metadata.Component.Hashes[0].Content) {
		t.Errorf("it is no CycloneDX 1.6 document of the program: %+v", d.Metadata)
	}

	info, err := buildinfo.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) == 0 {
		t.Fatalf("%s is made of no modules", file)
	}
	want, got, refs := []string{"pkg:golang/std@" + info.GoVersion}, []string(nil), []string(nil)
	for _, m := range info.Deps {
		want = append(want, "pkg:golang/"+m.Path+"@"+m.Version)
	}
	for _, c := range d.Components {
		got, refs = append(got, c.PURL), append(refs, c.Ref)
		if c.Type != "library" || c.Name == "" || c.Version == "" || len(c.Licenses) != 1 || c.Licenses[0].License.ID != "MIT" {
			t.Errorf("%s is incomplete: %+v", c.PURL, c)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the modules of the program and those of its SBOM (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(refs, d.Dependencies[0].DependsOn); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNoProgram(t *testing.T) {
	if err := (sbom.Program{File: "sbom_test.go"}).Write(&bytes.Buffer{}); err == nil {
		t.Error("a text has an SBOM")
	}
}
