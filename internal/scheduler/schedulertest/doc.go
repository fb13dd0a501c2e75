// Package schedulertest has objects and fakes for tests of the scheduler.
package schedulertest
