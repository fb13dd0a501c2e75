// Package sbom writes down what a program is made of, as CycloneDX.
//
// The modules are read from the program itself, in which the linker has recorded them. The caller
// adds the licenses.
package sbom

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A Program is a file that was built.
type Program struct {
	// Name and Version of it, as people know them.
	Name, Version string
	File          string
	Created       time.Time
	// License of the program itself, by its SPDX identifier.
	License string
	// Licences are the licenses of a module, by their SPDX identifiers.
	Licences func(module string) []string
}

type document struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Serial       string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp time.Time `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []licensed `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type licensed struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// Write writes the SBOM of a program. The same file is always the same document.
func (p Program) Write(w io.Writer) error {
	info, err := buildinfo.ReadFile(p.File)
	if err != nil {
		return fmt.Errorf("cannot read what %s is made of: %w", p.File, err)
	}
	data, err := os.ReadFile(p.File)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", p.File, err)
	}
	sum := sha256.Sum256(data)
	d := document{Format: "CycloneDX", SpecVersion: "1.6", Serial: serial(sum), Version: 1, Components: p.components(info)}
	d.Metadata = metadata{Timestamp: p.Created, Component: component{
		Type: "application", Ref: purl(info.Main.Path, p.Version) + "#" + strings.TrimPrefix(info.Path, info.Main.Path+"/"), Name: p.Name, Version: p.Version,
		PURL: purl(info.Main.Path, p.Version), Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}, Licenses: licences(p.License), Properties: settings(info),
	}}
	// How modules depend on each other is not in the program.
	all := dependency{Ref: d.Metadata.Component.Ref, DependsOn: []string{}}
	for _, c := range d.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	d.Dependencies = []dependency{all}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)

	return encoder.Encode(d)
}

// Std is the name of the standard library.
const Std = "std"

func (p Program) components(info *debug.BuildInfo) []component {
	modules := []*debug.Module{{Path: Std, Version: info.GoVersion}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, m)
	}
	all := make([]component, 0, len(modules))
	for _, m := range modules {
		c := component{Type: "library", Ref: purl(m.Path, m.Version), Name: m.Path, Version: m.Version, PURL: purl(m.Path, m.Version), Licenses: licences(p.Licences(m.Path)...)}
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}} // as in go.sum: the digest of a list of digests
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b component) int { return strings.Compare(a.Name, b.Name) })

	return all
}

// settings are how it was built.
func settings(info *debug.BuildInfo) []property {
	all := []property{{"go:version", info.GoVersion}}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" || s.Key == "-trimpath" {
			all = append(all, property{"go:" + s.Key, s.Value})
		}
	}

	return all
}

func licences(ids ...string) []licensed {
	all := make([]licensed, len(ids))
	for i, id := range ids {
		all[i].License.ID = id
	}

	return all
}

// purl is the name that other tools look for.
func purl(module, version string) string {
	return "pkg:golang/" + module + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// serial is a UUID that only this program has: of version 8, made from a digest.
func serial(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80

	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
