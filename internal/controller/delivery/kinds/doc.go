// Package kinds knows which kinds the API server serves, and in which scope. It remembers for a short
// time the kinds that are not served.
package kinds
