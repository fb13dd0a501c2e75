// Package show holds what commands print for programs, and what a console shows: findings and notes with
// the keys of their JSON, which are never renamed. Packages below it hold the views of one area, and make
// them of objects. Nothing here reads a cluster or writes text for people.
package show
