// Program is what runs in the containers of test/node: the container that holds the
// namespaces of a pod, a server, and synthesizers that work and that fail in every way.
// The first argument reports which.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// modes are what the program can do. Each returns an error that ends it with code 3.
var modes = map[string]func(args []string) error{
	"pause":      pause,
	"synthesize": synthesize,
	"fail":       func([]string) error { return errors.New("no luck today") },
	"sleep":      sleep,
	"large":      large,
	"eat":        eat,
	"tmp":        temporary,
	"root":       writeRoot,
	"kill":       killAll,
}

func main() {
	if len(os.Args) < 2 || modes[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "program %q: the first argument must be a mode\n", os.Args)
		os.Exit(2)
	}
	if err := modes[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// pause waits for a signal to end.
func pause([]string) error {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end

	return nil
}

// sleep does nothing for longer than any synthesis may take.
func sleep([]string) error {
	<-time.After(10 * time.Minute)

	return nil
}

// synthesize writes one ConfigMap: namespace, name, and data as key=value. A value of the
// form @5s is how long it waits first.
func synthesize(args []string) error {
	data := map[string]string{"uid": strconv.Itoa(os.Getuid())}
	for _, arg := range args[2:] {
		key, value, _ := strings.Cut(arg, "=")
		if wait, ok := strings.CutPrefix(arg, "@"); ok {
			d, err := time.ParseDuration(wait)
			if err != nil {
				return err
			}
			<-time.After(d)

			continue
		}
		data[key] = value
	}

	return output(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"namespace": args[0], "name": args[1]}, "data": data,
	})
}

func output(items ...any) error {
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items})
}

// large writes more than a synthesis may.
func large([]string) error {
	_, err := os.Stdout.Write(bytes.Repeat([]byte("0123456789abcdef"), 12<<16))

	return err
}

// eat uses memory until it is killed.
func eat([]string) error {
	var all [][]byte
	for {
		all = append(all, bytes.Repeat([]byte{1}, 8<<20))
		if len(all) > 1<<10 {
			return errors.New("8 GiB are in use, and nothing has killed this program")
		}
	}
}

// temporary uses a temporary file and reports where.
func temporary(args []string) error {
	file, err := os.CreateTemp("", "")
	if err != nil {
		return err
	}
	if _, err := file.WriteString("x"); err != nil {
		return err
	}

	return synthesize(append(args, "tmp="+file.Name()))
}

// writeRoot writes to the root directory, which is read-only.
func writeRoot([]string) error { return os.WriteFile("/file", nil, 0o600) }

// killAll kills every process that it may, and then works.
func killAll(args []string) error {
	err := syscall.Kill(1, syscall.SIGKILL)

	return synthesize(append(args, fmt.Sprintf("kill=%v", err)))
}
