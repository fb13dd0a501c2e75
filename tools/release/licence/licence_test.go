package licence_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/tools/release/licence"
	"github.com/arbor-control/arbor/tools/release/product"
)

const root = "../../.."

// Everything that is linked into what is shipped has a licence that allows it.
func TestShipped(t *testing.T) {
	for _, p := range product.Platforms {
		modules, err := licence.Linked(t.Context(), root, p.OS, p.Arch, product.Packages(product.InRelease)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range licence.Check(modules) {
			t.Error(wrong)
		}
		found := map[string][]string{}
		for _, m := range modules {
			found[m.Path] = m.IDs()
		}
		for path, want := range map[string][]string{
			"std": {"BSD-3-Clause"}, "go.yaml.in/yaml/v3": {"Apache-2.0", "MIT"},
			"k8s.io/apimachinery": {"Apache-2.0", "BSD-3-Clause"}, // it has taken over code of Go itself
		} {
			if diff := cmp.Diff(want, found[path]); diff != "" {
				t.Errorf("%s, for %s (-want +got):\n%s", path, p, diff)
			}
		}
	}
}

// So has the plugin of kubectl, for every system.
func TestPlugin(t *testing.T) {
	for _, p := range product.PluginPlatforms {
		modules, err := licence.Linked(t.Context(), root, p.OS, p.Arch, product.Packages([]string{product.Plugin})...)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range licence.Check(modules) {
			t.Errorf("%s: %s", p, wrong)
		}
	}
}

// So has what is linked into the images, which have programs of their own.
func TestImages(t *testing.T) {
	for _, i := range product.Images {
		modules, err := licence.Linked(t.Context(), filepath.Join(root, i.Module), "linux", "arm64", i.Packages()...)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range licence.Check(modules) {
			t.Errorf("%s: %s", i.Name, wrong)
		}
		for _, m := range modules {
			if m.Path == product.Module {
				t.Errorf("%s: Arbor itself is taken for the work of others", i.Name)
			}
		}
	}
}

func TestClassify(t *testing.T) {
	own, err := os.ReadFile(root + "/LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	const mit = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify,
merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit … The above copyright notice and this
permission notice shall be included in all copies or substantial portions of the Software. THE SOFTWARE IS PROVIDED "AS IS",
WITHOUT WARRANTY OF ANY KIND`

	cases := map[string]struct {
		reason, text string
		want         []string
	}{
		"Own":      {"Arbor's own is one of them.", string(own), []string{"Apache-2.0"}},
		"MIT":      {"Layout and signs do not matter.", "MIT\n" + mit, []string{"MIT"}},
		"Two":      {"A text can hold several.", mit + string(own), []string{"Apache-2.0", "MIT"}},
		"Half":     {"A text that lacks a sentence is not the licence.", mit[:300], nil},
		"Addition": {"What takes a right away makes another licence of it.", mit + "\nCommons Clause License Condition v1.0", nil},
		"GPL":      {"What asks for more than its text is not allowed.", "GNU GENERAL PUBLIC LICENSE Version 3, 29 June 2007", nil},
		"Empty":    {"No text is no licence.", "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, licence.Classify(tc.text)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	text := func(name string, ids ...string) licence.Text {
		return licence.Text{Name: name, Content: "Copyright of somebody", IDs: ids}
	}
	modules := []licence.Module{
		{Path: "example.com/good", Version: "v1.0.0", Texts: []licence.Text{text("LICENSE", "MIT"), text("NOTICE")}},
		{Path: "example.com/none", Version: "v1.0.0", Texts: []licence.Text{text("PATENTS")}},
		{Path: "example.com/odd", Version: "v1.0.0", Texts: []licence.Text{text("LICENSE", "MIT"), text("taken/LICENSE")}},
	}
	got := licence.Check(modules)
	if len(got) != 2 || !strings.HasPrefix(got[0], "example.com/none v1.0.0: it has no license") ||
		!strings.HasPrefix(got[1], `example.com/odd v1.0.0: its taken/LICENSE is not one of the licenses that Arbor may be shipped with; it begins with "Copyright of somebody"`) {
		t.Errorf("got %q", got)
	}

	var b strings.Builder
	if err := licence.Notices(&b, licence.Merge(modules, modules)); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), "Copyright of somebody") != 1 || strings.Count(b.String(), "example.com/good v1.0.0 (LICENSE)\n") != 1 {
		t.Errorf("a text is to be there once, with all who have it:\n%s", b.String())
	}
}
