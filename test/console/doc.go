// Package console executes the console blocks of the documentation, so that sample output is what
// the programs print.
//
// A block is
//
//	```console
//	$ kubectl get podgroups
//	NAME      QUEUE   MINMEMBER   PLACED   SCHEDULED   VALID   AGE
//	trainer           4           0        False       True    3s
//	```
//
// A line that begins with "$ " is a command; a command that ends with a backslash, or that opens a
// here-document, goes on in the next line. The lines below are its output. All blocks of a page run
// in one shell, one after the other, in a folder that looks like the root of the repository, with a
// namespace of their own. Commands and examples name it "default", and so does the output. A page
// that has `make up` gets a control plane of its own, with the same arguments.
//
// Output is compared line by line. In what the page shows, "…" stands for any text, and for any
// lines if it is alone in a line. Times, ages, UIDs and the random ends of names are equal to each
// other, and so are runs of spaces. A command that only reads is repeated until its output is right. A
// command without documented output must succeed.
//
// What the page takes for granted, and does not show, is in a comment that has the same form:
//
//	<!-- console
//	$ kubectl create namespace network
//	-->
//
// "```console no-run=REASON" is not executed. The reasons are a closed list: see reasons.
package console
