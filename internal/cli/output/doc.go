// Package output is the one set of flags that specify what commands print, and how often: -o with its
// formats, --no-headers, --watch, --exit-code, --selector, --width and --depth. A command adds those that make
// sense for it.
package output
