package main

// release is set by the linker; see the Makefile.
var release = "development"

func version() string {
	return release + " (Kubernetes " + kubernetesVersion() + ")"
}
