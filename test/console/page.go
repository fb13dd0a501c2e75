package console

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// A Command is a command of a page, and the output that the page shows.
type Command struct {
	Line   int // of the page
	Text   string
	Output []string
}

// A Block is a console block of a page.
type Block struct {
	Line     int
	NoRun    string // the reason why it is not executed
	Commands []Command
}

// reasons are why a block may not be executed.
func reasons() map[string]string {
	return map[string]string{
		"registry": "it needs a registry of images",
		"internet": "it needs the internet",
		"cluster":  "it needs a cluster of the reader's own",
		"node":     "it needs a real node",
		"minutes":  "it takes minutes, and a test of its own runs it",
		"earlier":  "it shows another program, or an earlier state",
	}
}

var (
	opening      = regexp.MustCompile("^( *)(```|<!--) ?console(.*)$")
	hereDocument = regexp.MustCompile(`<<-?\s*'?(\w+)'?`)
)

// Parse reads the console blocks of a page.
func Parse(page string) ([]Block, error) {
	var blocks []Block
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		m := opening.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		b := Block{Line: i + 1}
		if err := b.option(strings.TrimSpace(m[3])); err != nil {
			return nil, fmt.Errorf("line %d: %w", b.Line, err)
		}
		end := map[string]string{"```": "```", "<!--": "-->"}[m[2]]
		begin := i + 1
		i++
		for i < len(lines) && strings.TrimSpace(lines[i]) != end {
			i++
		}
		if i == len(lines) {
			return nil, fmt.Errorf("line %d: the block is not closed", b.Line)
		}
		if err := b.commands(lines[begin:i], m[1], begin+1); err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}

	return blocks, nil
}

// Read reads the console blocks of a file.
func Read(path string) ([]Block, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read a page: %w", err)
	}
	blocks, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	return blocks, nil
}

func (b *Block) option(text string) error {
	if text == "" {
		return nil
	}
	reason, ok := strings.CutPrefix(text, "no-run=")
	if !ok || reasons()[reason] == "" {
		return fmt.Errorf("unknown option %q of a console block: want no-run= and one of the reasons of test/console", text)
	}
	b.NoRun = reason

	return nil
}

// commands reads the lines of a block, of which the first has the given number.
func (b *Block) commands(lines []string, indent string, first int) error {
	var end string // of a here-document
	open := false  // the command goes on
	for i, line := range lines {
		line = strings.TrimPrefix(line, indent)
		last := len(b.Commands) - 1
		switch text, isCommand := strings.CutPrefix(line, "$ "); {
		case open:
			b.Commands[last].Text += "\n" + strings.TrimPrefix(line, "> ")
			if end != "" {
				open = strings.TrimSpace(strings.TrimPrefix(line, "> ")) != end
			} else {
				open = strings.HasSuffix(line, `\`)
			}
		case isCommand:
			b.Commands = append(b.Commands, Command{Line: first + i, Text: text})
			end = ""
			if m := hereDocument.FindStringSubmatch(text); m != nil {
				end = m[1]
			}
			open = end != "" || strings.HasSuffix(text, `\`)
		case last < 0:
			return fmt.Errorf("line %d: a console block begins with a command after %q", first+i, "$ ")
		default:
			b.Commands[last].Output = append(b.Commands[last].Output, strings.TrimRight(line, " "))
		}
	}

	return nil
}
