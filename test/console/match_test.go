package console_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/test/console"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct {
		shown, output string
		ok            bool
	}{
		"the same text":                                    {"a b\nc", "a b\nc\n", true},
		"another text":                                     {"a b", "a c", false},
		"a line is missing":                                {"a\nb", "a", false},
		"a line too many":                                  {"a", "a\nb", false},
		"columns may be wider":                             {"NAME   AGE\nweb    3s", "NAME        AGE\nweb         15m", true},
		"another age":                                      {"waits for 3s", "waits for 1m20s", true},
		"a number is not an age":                           {"3 of 4 pods", "2 of 4 pods", false},
		"another time":                                     {"at 2026-11-15T10:15:41Z", "at 2027-01-02T03:04:05Z", true},
		"another end of a name":                            {"replica-0-5b78dbf75f-9mxcd 1/1", "replica-0-6c89fcf86b-kfrz7 1/1", true},
		"another name with such an end":                    {"replica-0-5b78dbf75f-9mxcd 1/1", "replica-1-6c89fcf86b-kfrz7 1/1", false},
		"a number of a name is not its end":                {"arbor-node-1", "arbor-node-2", false},
		"another address of a Service":                     {"web 10.96.208.63 80/TCP", "web 10.96.1.2 80/TCP", true},
		"… stands for the rest of a line":                  {"a …", "a b c", true},
		"… stands for the middle of a line":                {"a … d", "a b c d", true},
		"… does not stand for what comes after it":         {"a … d", "a b c e", false},
		"… alone stands for lines":                         {"a\n…\nd", "a\nb\nc\nd", true},
		"… alone stands for no line too":                   {"a\n…", "a", true},
		"… alone does not stand for the line after it":     {"a\n…\nd", "a\nb\nc", false},
		"two of them":                                      {"…\nb\n…\nd", "a\nb\nc\nd", true},
		"empty lines at the end":                           {"a\n\n", "a\n", true},
		"output where the page has none, and page has one": {"a", "", false},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			err := console.Match(strings.Split(c.shown, "\n"), c.output)
			if (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	page := "# A page\n\n```sh\n$ not this\n```\n\n```console\n$ kubectl get x \\\n    -o name\nx/y\n\nend  \n$ cat <<EOF\nin $ here\nEOF\nin here\n$ true\n```\n\n1. In a list:\n   ```console no-run=internet\n   $ curl\n   ```\n<!-- console\n$ hidden\n-->\n<!-- another comment -->\n"
	got, err := console.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []console.Block{
		{Line: 7, Commands: []console.Command{
			{Line: 8, Text: "kubectl get x \\\n    -o name", Output: []string{"x/y", "", "end"}},
			{Line: 13, Text: "cat <<EOF\nin $ here\nEOF", Output: []string{"in here"}},
			{Line: 17, Text: "true"},
		}},
		{Line: 21, NoRun: "internet", Commands: []console.Command{{Line: 22, Text: "curl"}}},
		{Line: 24, Commands: []console.Command{{Line: 25, Text: "hidden"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for reason, bad := range map[string]string{
		"an option that does not exist":     "```console norun\n$ a\n```",
		"a reason that is not in the list":  "```console no-run=because\n$ a\n```",
		"a block that is not closed":        "```console\n$ a\n",
		"a block that begins with output":   "```console\na\n```",
		"an empty reason is none":           "```console no-run=\n$ a\n```",
		"a reason and more is not a reason": "```console no-run=internet or so\n$ a\n```",
	} {
		if blocks, err := console.Parse(bad); err == nil {
			t.Errorf("%s: got %+v", reason, blocks)
		}
	}
}
