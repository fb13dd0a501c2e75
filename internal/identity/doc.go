// Package identity identifies the objects that manifests are about. Synthesis,
// delivery, the stock synthesizers and the command line use the same type and the same
// rules, because a disagreement about whether two manifests are one object deletes
// something that must stay.
//
// # Versions
//
// The versions of an API group are representations of one object. An Identity has the
// group and no version.
//
// # Scope
//
// A cluster-scoped object has no namespace. The API server ignores the namespace in its
// manifest, so manifests of namespaces a and b are one object. [Identity.Normalize]
// removes the namespace if the scope of the kind is known:
//
//   - Delivery and "arbor delivery diff" ask the API server that they deliver to.
//   - Stock synthesizers know the kinds of Kubernetes and of the CRDs that they render.
//   - Synthesis does not know scopes: it has no access to the cluster that is delivered
//     to, and the CRD may be part of its own output. It compares manifests as they are
//     written, and may write a tombstone of a/x next to the manifest of b/x. Delivery
//     drops such a tombstone.
//   - While the CRD of a kind is not installed, or the API server cannot be asked,
//     delivery uses the namespace as written, protects the object under both identities
//     from other compositions, and reads the composition again once it learns that the
//     kind is cluster-scoped. Until then it deletes nothing that this could be about.
//
// # Patches
//
// A Patch is a manifest that changes the object of another owner. One rule applies
// everywhere:
//
//   - The target of a Patch is the object of the group and kind in its field patch, with
//     the namespace and name of the Patch itself. [Identity.Target] is the target.
//   - Several Patches of one target are different manifests. [Number] distinguishes them by
//     their order. Two manifests of one object that are not Patches are an error.
//   - A Patch leaves no tombstone: what it changed is not reverted, and the target is not
//     deleted. A resource that becomes a Patch of itself leaves no tombstone either. See
//     [Kept].
package identity
