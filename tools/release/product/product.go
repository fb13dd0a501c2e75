// Package product says what Arbor ships, and in which form: the one list for the
// image, the release and the check of licences. A test compares it with the
// Dockerfile.
package product

// Module is the path of Arbor's module.
const Module = "github.com/arbor-control/arbor"

// A Platform is one that Arbor is released for.
type Platform struct{ OS, Arch string }

// String is how platforms are written in image names: linux/amd64.
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Platforms are those of every release.
var Platforms = []Platform{{"linux", "amd64"}, {"linux", "arm64"}}

// What the image is like.
const (
	// User runs the programs of the image: nobody in particular, and not root.
	User = "65532:65532"
	// Entrypoint is what runs if nothing else is said.
	Entrypoint = "/arbor-manager"
	// Notices is where the licences of others are in the image.
	Notices = "/THIRD_PARTY_NOTICES"
	// License is where Arbor's own is.
	License = "/LICENSE"
)

// Labels of the image, beside its version, its revision and its date.
var Labels = map[string]string{
	"org.opencontainers.image.title":       "arbor-manager",
	"org.opencontainers.image.description": "Arbor's controllers and admission webhooks",
	"org.opencontainers.image.source":      "https://" + Module,
	"org.opencontainers.image.licenses":    "Apache-2.0",
}

// Labels that are different from one build to the next.
const (
	VersionLabel  = "org.opencontainers.image.version"
	RevisionLabel = "org.opencontainers.image.revision"
	CreatedLabel  = "org.opencontainers.image.created"
)

var (
	// InImage are the commands that the image holds.
	InImage = []string{"arbor-manager", "arbor-executor"}
	// InRelease are the commands that are released as files.
	InRelease = []string{"arbor", "arbor-manager", "arbor-executor"}
)

// Packages are the import patterns of commands.
func Packages(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = "./cmd/" + name
	}

	return all
}
