// Package observed decides what the watch of an object shows about an object that was written
// before: whether it is unchanged, has drifted, or is terminating.
//
//	Object   what the watch knows
//	Write    what the last write made of the object
package observed
