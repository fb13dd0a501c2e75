// Package executor runs the programs of Synthesizers.
//
// An Executor takes a Job, what to run with which input, and returns what the
// program wrote. What that means is the business of others: package krm reads
// it.
//
// Process runs the command on this machine, as the user who runs the manager.
//
// An executor that runs elsewhere, such as in pods, fits in as follows. Execute
// may take as long as its context allows, so it can start something, wait for it
// and bring back what came of it. A Job has the uuid of its synthesis, which is
// what a pod is labelled with: an executor that finds one of that uuid waits for
// it instead of starting another. If what runs elsewhere writes its slices and
// promotes them itself, there is nothing to bring back: whoever called Execute
// then sees that the synthesis is not in flight any more, and leaves it alone, as
// it does with every other that was superseded.
package executor
