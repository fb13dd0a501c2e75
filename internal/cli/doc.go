// Package cli puts the commands together that people and CI run: lint, audit, doctor, groups, pools, fields,
// compositions, version, uninstall. It rejects unknown commands with a suggestion and completes names.
//
// Each group of commands is a package below this one, and none imports another. A command is three steps:
// gather (package source: files, or a cluster through a lister), decide (internal/decide, the same functions
// that admission calls, so the messages are the same), print (package render for people, internal/show for
// programs). What they share:
//
//	command   exit codes, usage errors, flags of several commands
//	source    where a command looks, and how it reads and changes objects
//	check     what is wrong with the pools of a cluster
//	render    trees, tables, styles, widths and progress
//	clitest   commands on objects in memory, for tests
//
// The commands return a command.ExitError and print nothing about it: the main prints the error once and
// exits with the code.
package cli
