// Package apply makes the objects of the cluster agree with their manifests.
//
// A worker takes one resource at a time: it gathers what is known, evaluates overrides, asks
// [github.com/arbor-control/arbor/internal/decide/delivery.Decide] what to do, does it, and settles the
// state of the manifest. What it needs to know is mostly there already, so an object that is as it was
// applied costs no request, and one that is not costs one, an apply.
package apply
