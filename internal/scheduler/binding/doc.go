// Package binding binds the pods of a gang that have their places. A round prepares every
// pod that the minimum needs before the first one is bound. If one of them cannot be
// prepared in time, all give up their places and return to the queue.
package binding
