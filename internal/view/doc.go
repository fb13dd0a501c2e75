// Package view keeps engines current from watches and hands out what they say.
//
// A view is for speed, never for safety. It is fed piece by piece, so it can be
// a moment behind, and after a reconnect for a moment be neither the old nor
// the new state. Who decides something that must be right reads the objects.
package view
