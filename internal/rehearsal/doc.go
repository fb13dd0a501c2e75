// Package rehearsal finds out what the delivery of a Composition would change: the server rehearses each
// write, and the answer is compared with the live object. What is done about an object is decided by
// internal/decide/delivery, as the delivery does.
package rehearsal
