// Package clusterfacts reads from a cluster the facts that internal/decide/health checks: versions, CRDs, webhooks,
// Deployments, leases, permissions and backlogs. It writes nothing; reviews and dry runs are requests that
// the API server does not store.
package clusterfacts
