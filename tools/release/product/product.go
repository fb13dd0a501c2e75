// Package product says what Arbor ships, and in which form: the one list for the
// images, the release and the check of licences.
package product

// Module is the path of Arbor's module.
const Module = "github.com/arbor-control/arbor"

// A Platform is one that Arbor is released for.
type Platform struct{ OS, Arch string }

// String is how platforms are written in image names: linux/amd64.
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Platforms are those of every release.
var Platforms = []Platform{{"linux", "amd64"}, {"linux", "arm64"}}

// What all images are like.
const (
	// User runs the programs of an image: nobody in particular, and not root.
	User = "65532:65532"
	// Notices is where the licences of others are in an image.
	Notices = "/THIRD_PARTY_NOTICES"
	// License is where Arbor's own is.
	License = "/LICENSE"
)

// An Image is one that is shipped.
type Image struct {
	// Name is that of the image, and of the command that runs if nothing else is said.
	Name        string
	Description string
	// Commands are the programs that it holds.
	Commands []string
	// Module is the folder of the module that its only program is, if that is not a
	// command of Arbor's own module.
	Module string
}

// Images are those of every release. The scheduler has one of its own: it is as large
// as all the rest, and most clusters do without.
var Images = []Image{
	{Name: "arbor-manager", Description: "Arbor's controllers and admission webhooks", Commands: []string{"arbor-manager", "arbor-executor"}},
	{Name: "arbor-scheduler", Description: "kube-scheduler that places the pods of a PodGroup together or not at all", Commands: []string{"arbor-scheduler"}},
	{Name: "arbor-synthesizer-yaml", Description: "Synthesizer that delivers plain manifests", Commands: []string{"arbor-synthesizer-yaml"}},
	{Name: "arbor-synthesizer-kustomize", Description: "Synthesizer that delivers a kustomization", Commands: []string{"arbor-synthesizer-kustomize"}},
	{Name: "arbor-synthesizer-helm", Description: "Synthesizer that delivers a Helm chart", Commands: []string{"arbor-synthesizer-helm"}, Module: "synthesizers/helm"},
}

// Packages are the import patterns of the programs of an image, within its module.
func (i Image) Packages() []string {
	if i.Module != "" {
		return []string{"."}
	}

	return Packages(i.Commands)
}

// Entrypoint is what runs if nothing else is said.
func (i Image) Entrypoint() string { return "/" + i.Name }

// Labels are those beside its version, its revision and its date.
func (i Image) Labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       i.Name,
		"org.opencontainers.image.description": i.Description,
		"org.opencontainers.image.source":      "https://" + Module,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
}

// Labels that are different from one build to the next.
const (
	VersionLabel  = "org.opencontainers.image.version"
	RevisionLabel = "org.opencontainers.image.revision"
	CreatedLabel  = "org.opencontainers.image.created"
)

// InRelease are the commands that are released as files.
var InRelease = []string{"arbor", "arbor-manager", "arbor-scheduler", "arbor-executor"}

// Plugin is the command that is released as a plugin of kubectl.
const Plugin = "kubectl-arbor"

// PluginPlatforms are those of the plugin.
var PluginPlatforms = []Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}}

// Packages are the import patterns of commands.
func Packages(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = "./cmd/" + name
	}

	return all
}
