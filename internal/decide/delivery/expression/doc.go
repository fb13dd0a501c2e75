// Package expression compiles and evaluates the CEL expressions that manifests contain, within
// limits.
//
// Anyone who may create a manifest may write an expression, and the manager evaluates it. So each
// evaluation has a limit of work, which is checked before every call of a function, and a limit of
// time. [Compiler] compiles each text once; [Program] evaluates it.
package expression
