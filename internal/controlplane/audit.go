package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
)

// auditPolicy has a line for each request, without its contents: two of a
// watch, so that one that never ends is seen too.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
`

// auditFlags make the API server write an audit log, if a file for it is set.
func auditFlags(h *home, log string) ([]string, error) {
	if log == "" {
		return nil, nil
	}
	log, err := filepath.Abs(log)
	if err != nil {
		return nil, fmt.Errorf("cannot use audit log %s: %w", log, err)
	}
	policy := h.file("audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the audit policy: %w", err)
	}

	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log}, nil
}
