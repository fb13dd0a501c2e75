// Package serving keeps Arbor's admission webhooks reachable: it makes and
// rotates their certificates, and registers them with the trust that belongs
// to those certificates.
//
// What replicas share is one Secret with a certificate authority. Each replica
// signs a serving certificate of its own from it and keeps that in memory, so
// renewing one needs nobody else. The authority itself is replaced long before
// it ends, without a moment in which the API server distrusts a replica:
//
//	        old authority              new authority
//	trusted ├──────────────────────────────┤ … expires
//	                        trusted ├──────────────────────────────
//	signs   ├─────────────────────────┤
//	                            signs └────────────────────────────
//	                                ↑ ↑
//	                      registered  and only then, a while later, used
//
// cert-manager's DynamicAuthority signs in memory from a Secret too, and
// cert-manager/webhook-cert-lib adds the pending authority. That library has no
// release and may change without notice, and both register webhooks by Service
// and DNS names only; this package also registers them by URL, for a manager that
// runs on a laptop.
package serving
