package upgrade_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/api/crds"
)

// released are the CRDs of the last release. A maintainer who makes a release copies those of
// api/crds here; see docs/contribute/releasing.md.
func released(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("released/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no released CRDs: %v", err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, crd)
	}

	return all
}

// statusOfManager is why maps of a status may become atomic.
const statusOfManager = "Only the manager writes the status of a pool, by merge patches, which change single entries of an atomic map as well."

// deliberate are changes that break manifests on purpose. A release empties it.
var deliberate = map[string]string{
	"subnetclaims.plexaubnet.io: v1alpha1: .spec.clusterID must match ^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$ now": "" +
		"It becomes a label of the Subnet, and the API server rejects a label value that begins or ends with . or -: such a claim never got a block.",
	"resourceslices.eno.azure.io: v1: . has another rule: has(self.spec) == has(oldSelf.spec) && (!has(self.spec) || self.spec == oldSelf.spec)": "" +
		"Neither Arbor nor Eno changes the spec of a slice. Another client that does has anything delivered.",
	"synthesizers.eno.azure.io: v1: .spec.refs[] has another rule: !has(self.pinned) || !self.pinned || has(self.resource.name)": "" +
		"The field pinned is new: no manifest of the last release has it.",
	"subnetpools.plexaubnet.io: v1alpha1: .status.allocatableCountBySize is merged in another way, which changes who owns its parts": statusOfManager,
	"subnetpools.plexaubnet.io: v1alpha1: .status.allocatedCIDRs is merged in another way, which changes who owns its parts":         statusOfManager,
	"subnetpools.plexaubnet.io: v1alpha1: .status.freeCountBySize is merged in another way, which changes who owns its parts":        statusOfManager,
}

// TestCRDs holds the CRDs against those of the last release.
func TestCRDs(t *testing.T) {
	for _, before := range released(t) {
		now, ok := crds.ByKind(before.Spec.Group, before.Spec.Names.Kind)
		if !ok {
			t.Errorf("%s is gone: what is stored cannot be read any more", before.Name)

			continue
		}
		for _, text := range broken(before, now) {
			if deliberate[before.Name+": "+text] == "" {
				t.Errorf("%s: %s", before.Name, text)
			}
		}
	}
}

// Each case changes a CRD in a compatible or incompatible way.
func TestBroken(t *testing.T) {
	text := func(raw string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(raw)} }
	cases := map[string]struct {
		reason string
		do     func(crd *apiextensionsv1.CustomResourceDefinition, spec *schema)
		want   string
	}{
		"Nothing": {"The same is compatible.", func(*apiextensionsv1.CustomResourceDefinition, *schema) {}, ""},
		"NewField": {"More may be reported.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["new"] = schema{Type: "string"}
		}, ""},
		"NewDefault": {"What must be there and has a default is there.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["new"] = schema{Type: "string", Default: text(`"x"`)}
			s.Required = append(s.Required, "new")
		}, ""},
		"WiderEnum": {"One more choice.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["mode"] = schema{Type: "string", Enum: []apiextensionsv1.JSON{*text(`"a"`), *text(`"b"`), *text(`"c"`)}}
		}, ""},
		"Scope": {"They are elsewhere.", func(c *apiextensionsv1.CustomResourceDefinition, _ *schema) {
			c.Spec.Scope = apiextensionsv1.ClusterScoped
		}, "scope or names"},
		"Version": {"It cannot be set.", func(c *apiextensionsv1.CustomResourceDefinition, _ *schema) { c.Spec.Versions[0].Served = false }, "v1: it is not served"},
		"Status":  {"A status is written by itself.", func(c *apiextensionsv1.CustomResourceDefinition, _ *schema) { c.Spec.Versions[0].Subresources = nil }, "no status"},
		"Gone":    {"A reported value is dropped.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) { delete(s.Properties, "name") }, ".spec has no name any more"},
		"Type": {"A number is not a string.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["name"] = schema{Type: "integer"}
		}, `.spec.name is "integer", and was "string"`},
		"Required": {"Old manifests do not have it.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["new"] = schema{Type: "string"}
			s.Required = append(s.Required, "new")
		}, ".spec needs new now"},
		"Enum": {"One choice less.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["mode"] = schema{Type: "string", Enum: []apiextensionsv1.JSON{*text(`"a"`)}}
		}, `.spec.mode may not be "b" any more`},
		"NewEnum": {"Any value could be reported.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["name"] = schema{Type: "string", Enum: []apiextensionsv1.JSON{*text(`"a"`)}}
		}, "must be one of 1 values"},
		"Pattern": {"Names that were fine are not.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["name"] = schema{Type: "string", Pattern: "^a"}
		}, "must match ^a now"},
		"Length": {"Nor long ones.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["name"] = schema{Type: "string", MaxLength: new(int64(3))}
		}, "tighter limit of its length"},
		"MinLength": {"Nor short ones.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["name"] = schema{Type: "string", MinLength: new(int64(3))}
		}, "tighter limit of its least length"},
		"Range": {"Nor large numbers.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["count"] = schema{Type: "integer", Maximum: new(3.0)}
		}, ".spec.count has a tighter range"},
		"Rule": {"A rule may reject what is stored.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{Rule: "self.x"})
		}, "another rule: self.x"},
		"Merge": {"Items of a list then have other owners.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			l := s.Properties["list"]
			l.XListType = new("atomic")
			s.Properties["list"] = l
		}, ".spec.list is merged in another way"},
		"Items": {"Deep inside too.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["list"].Items.Schema.Type = "integer"
		}, ".spec.list[] is"},
		"Default": {"Stored values change their meaning.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["mode"] = schema{Type: "string", Enum: s.Properties["mode"].Enum, Default: text(`"b"`)}
		}, ""},
		"OtherDefault": {"The same, of one that there was.", func(_ *apiextensionsv1.CustomResourceDefinition, s *schema) {
			s.Properties["size"] = schema{Type: "integer", Default: text("2")}
		}, "another default"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			definition := func() *apiextensionsv1.CustomResourceDefinition {
				return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
					Scope: apiextensionsv1.NamespaceScoped,
					Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
						Name: "v1", Served: true, Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
						Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema{Type: "object", Properties: map[string]schema{"spec": {Type: "object", Properties: map[string]schema{
							"name":  {Type: "string"},
							"count": {Type: "integer"},
							"size":  {Type: "integer", Default: text("1")},
							"mode":  {Type: "string", Enum: []apiextensionsv1.JSON{*text(`"a"`), *text(`"b"`)}},
							"list":  {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "string"}}},
						}}}}},
					}},
				}}
			}
			now := definition()
			properties := now.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
			spec := properties["spec"]
			tc.do(now, &spec)
			properties["spec"] = spec
			got := strings.Join(broken(definition(), now), "; ")
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s\ngot  %q\nwant %q", tc.reason, got, tc.want)
			}
		})
	}
}
