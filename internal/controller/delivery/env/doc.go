// Package env has what the parts of a delivery share: clients, the clock, queues and settings.
package env
