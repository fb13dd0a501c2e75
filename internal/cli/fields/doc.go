// Package fields is the commands about the ownership of fields: who owns what, what a removal does, and
// how ownership is moved and moved back.
package fields
