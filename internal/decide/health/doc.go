// Package health reports what is wrong with Arbor in a cluster, and what to do about it. It is a
// function of Facts that the caller collects.
//
// A check of something that could not be read is Unknown, and names the users who could read it.
package health
