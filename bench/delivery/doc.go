// Package delivery measures how fast compositions are delivered, and what that costs.
package delivery
