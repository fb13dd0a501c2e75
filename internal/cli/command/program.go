package command

import (
	"os"
	"path/filepath"
	"strings"
)

// Plugin is how users type a program that kubectl starts.
const Plugin = "kubectl arbor"

// Program is the name of this program as users type it. Hints of what to run next begin with it.
func Program() string { return programOf(os.Args[0]) }

func programOf(path string) string {
	if strings.TrimSuffix(filepath.Base(path), ".exe") == "kubectl-arbor" {
		return Plugin
	}

	return "arbor"
}
