// Package registry has all compositions that are delivered, and which objects they want.
//
// An object that another composition wants has moved there, and is not deleted. So before a
// composition deletes anything, all other compositions that existed when it was loaded must have
// been read.
package registry
