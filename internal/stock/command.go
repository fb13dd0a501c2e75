package stock

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
)

// A Request is what a Renderer renders for.
type Request struct {
	// Composition and Namespace are the name and the namespace of the
	// Composition. Both are empty if a person runs the program by hand.
	Composition, Namespace string
	// Inputs in the order in which the Synthesizer lists them.
	Inputs []Input
	// Repeated is true for the second rendering, which must be the same as the first.
	Repeated bool
}

// A Rendering is what a Renderer makes.
type Rendering struct {
	Objects []Object
	// Warnings are shown in the status of the Composition.
	Warnings []string
}

// A Renderer makes objects of the files of its image and of inputs.
type Renderer func(Request) (Rendering, error)

// A Command is a synthesizer.
type Command struct {
	// Name of the program.
	Name string
	// Release is the version that --version prints.
	Release string
	// Register adds the flags of the Renderer.
	Register func(*flag.FlagSet)
	// Render makes the objects.
	Render Renderer

	// namespace is the default namespace of objects without one.
	namespace string
}

// Main runs the command with the arguments and the streams of the process, and
// returns the exit code.
func (c Command) Main() int {
	isolate()
	err := c.Run(os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	default:
		fmt.Fprintln(os.Stderr, "Error:", err)

		return 1
	}
}

// Run reads inputs and writes objects. It returns an error only if it could not
// do so much as read its flags and its inputs or write its output: a rendering
// that failed is part of the output.
func (c Command) Run(args []string, env func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	version := flags.Bool("version", false, "Print the version and exit.")
	flags.StringVar(&c.namespace, "namespace", "", "Namespace of objects that do not name one. The default is the namespace of the Composition.")
	c.Register(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version {
		_, err := fmt.Fprintln(stdout, c.Name, c.Release)

		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s takes no arguments, but got %q", c.Name, flags.Arg(0))
	}

	data, err := io.ReadAll(stdin)
	if err != nil {
		return fmt.Errorf("cannot read the inputs: %w", err)
	}
	rendering, err := c.render(Request{Composition: env("COMPOSITION_NAME"), Namespace: env("COMPOSITION_NAMESPACE")}, data)
	if err != nil {
		fmt.Fprintln(stderr, "Error:", err)
	}

	return write(stdout, rendering, err)
}

// render renders twice and compares.
func (c Command) render(r Request, input []byte) (Rendering, error) {
	inputs, err := readInputs(input)
	if err != nil {
		return Rendering{}, err
	}
	r.Inputs = inputs
	first, err := c.once(r)
	if err != nil {
		return Rendering{}, err
	}
	r.Repeated = true
	second, err := c.once(r)
	if err != nil {
		return Rendering{}, fmt.Errorf("the second rendering failed, and the first did not: %w", err)
	}

	return first, same(first.Objects, second.Objects)
}

// once renders, and completes the objects.
func (c Command) once(r Request) (Rendering, error) {
	rendering, err := c.Render(r)
	if err != nil {
		return Rendering{}, err
	}
	namespace := c.namespace
	if namespace == "" {
		namespace = r.Namespace
	}

	return rendering, complete(rendering.Objects, namespace)
}

// list is a ResourceList as synthesizers write it. Items are absent if the
// rendering failed, and a list, if an empty one, otherwise.
type list struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      *[]map[string]any `json:"items,omitempty"`
	Results    []result          `json:"results,omitempty"`
}

type result struct {
	Message  string `json:"message"`
	Severity string `json:"severity"`
}

func write(to io.Writer, r Rendering, failure error) error {
	out := list{APIVersion: "config.kubernetes.io/v1", Kind: "ResourceList"}
	if failure != nil {
		out.Results = []result{{Message: failure.Error(), Severity: "error"}}
	} else {
		items := make([]map[string]any, 0, len(r.Objects))
		for _, o := range r.Objects {
			items = append(items, o.Content)
		}
		out.Items = &items
	}
	for _, w := range r.Warnings {
		out.Results = append(out.Results, result{Message: w, Severity: "warning"})
	}
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}

	return nil
}

// isolate takes the network and other programs from this process, whatever the
// libraries that render would do with them. What they would need is found by the
// renderers before, with a better message.
func isolate() {
	http.DefaultTransport = offline{} //nolint:reassign // that is the point
	for name, value := range map[string]string{"PATH": "", "NO_PROXY": "", "no_proxy": "", "HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "http_proxy": nowhere, "https_proxy": nowhere} {
		_ = os.Setenv(name, value)
	}
}

// nowhere is an address that no connection can be made to.
const nowhere = "http://127.0.0.1:0"

// offline fails every request.
type offline struct{}

// RoundTrip fails a request.
func (offline) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("cannot load %s: synthesizers have no network; put the file into the image", r.URL.Redacted())
}
