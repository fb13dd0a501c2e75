// Command testreport reads the events of `go test -json`, prints them like `go test` does, and
// ends with what a reader needs first: the time that each package took, and the messages of the
// tests that failed. Their logs can be long, and a log that is cut off keeps its end.
//
//	go test -json ./... | testreport
//
// It exits with 1 when a test or a package failed, also when `go test` itself could not tell,
// and when the events end early.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	ok, err := run(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

// run reads events until their end, and reports whether everything passed.
func run(in io.Reader, out io.Writer) (bool, error) {
	w := bufio.NewWriter(out)
	r := newReport(w)
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				_, _ = w.Write(line) // a message of the go command itself
			} else {
				r.add(&e)
			}
			if err := w.Flush(); err != nil {
				return false, fmt.Errorf("cannot write the report: %w", err)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return false, fmt.Errorf("cannot read the events of go test: %w", err)
		}
	}
	r.summarize()
	if err := w.Flush(); err != nil {
		return false, fmt.Errorf("cannot write the report: %w", err)
	}

	return r.passed(), nil
}
