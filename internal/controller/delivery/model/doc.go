// Package model has what the delivery knows about one composition.
//
//	Composition   the current synthesis: its manifests are read once, and each has a state
//	  Slice       where states are written, and whether another client has changed it
//	  Item        one manifest, as JSON, with its state
//	    Memory    what this process has applied, and what the object became; it outlives the synthesis
//
// A [Composition] is replaced when its synthesis or its settings change, and hands over what is still
// true to the next one. Nothing here sends a request.
package model
