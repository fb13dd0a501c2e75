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
// The libraries of the field that do such things mount the Secret into the pod
// and wait for the kubelet to bring the files; here no kubelet is needed, so
// the same code serves on a laptop.
package serving
