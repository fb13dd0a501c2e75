package transfer

import (
	"bytes"
	"path/filepath"
	"strings"
)

// A Format is a way to write pools and blocks down.
type Format string

// Formats. YAML and JSON are objects of Kubernetes.
const (
	FormatYAML   Format = "yaml"
	FormatJSON   Format = "json"
	FormatCSV    Format = "csv"
	FormatNetBox Format = "netbox"
	FormatAWS    Format = "aws"
)

// Detect guesses the format of a file by its name and by what is in it.
func Detect(name string, data []byte) Format {
	start := bytes.TrimSpace(data)
	header, _, _ := bytes.Cut(start, []byte("\n"))
	isJSON := bytes.HasPrefix(start, []byte("{"))
	isTable := bytes.Contains(header, []byte(",")) && !isJSON && !strings.Contains(filepath.Ext(name), "ml")
	switch {
	case isJSON && (bytes.Contains(data, []byte(`"IpamPoolCidrs"`)) || bytes.Contains(data, []byte(`"IpamPoolAllocations"`))):
		return FormatAWS
	case isTable && bytes.Contains(bytes.ToLower(header), []byte("prefix")):
		return FormatNetBox
	case isTable, filepath.Ext(name) == ".csv":
		return FormatCSV
	case isJSON:
		return FormatJSON
	default:
		return FormatYAML
	}
}
