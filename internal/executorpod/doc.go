// Package executorpod has the commands of arbor-executor, the program that runs in the
// pod of a synthesis.
//
//	synth-installer   arbor-executor install   puts the program where the next finds it
//	executor          arbor-executor serve     runs the synthesizer, in its image, and knows nothing
//	publisher         arbor-executor publish   reads inputs, hands them over, writes slices
//
// The last two share a unix socket and nothing else. So the program of the
// synthesizer never sees the credentials that the publisher has.
package executorpod
