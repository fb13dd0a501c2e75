// Package cli holds the commands that people and CI run: lint, audit, doctor,
// groups, pools, fields, delivery, uninstall.
//
// Each command is three steps, in one file named after it: gather (files
// through package manifest, or a cluster through a lister), decide (package
// decide, the same functions that admission calls, so the words are the
// same), print. What they share:
//
//	finding.go    what is wrong with one object, and how it is written
//	podgroup.go   from untyped objects to PodGroups and their findings
//	estate.go     the same for pools, Subnets and claims, which are looked at together
//	scope.go      where a command looks: namespaces of a cluster, or files
//	cluster.go    talks to an API server, of which kinds are known
//	shape.go      how things hang together that name their parents
//	climb.go      the way through a shape, with the lines of a tree
//	forest.go     the tree of a PodGroup, also of one that is no tree
//	draw.go       the forest as lines of text
//	addresses.go  the objects of the address API
//	editor.go     writes objects of the address API, while no manager runs
//	inventory.go  what there is in pools, counted from them
//	fields_*.go   who owns which field; fields_find.go asks for objects of any kind
//	groups_*.go   what a scheduler would do; groups_ask.go is all that is known of one
//	doctor_*.go   what Arbor needs in a cluster
//	delivery_*.go compositions; delivery_gather.go reads them, delivery_state.go says how far they are
//	output.go     -o, JSON and YAML
//	style.go      colour, locale, and text that is safe on a terminal
//	exit.go       exit codes: 0 fine, 1 found something, 2 could not look
//
// The commands return an [ExitError] and print nothing about it: the root
// command prints the error once and exits with the code.
package cli
