package transfer

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// columns of our own CSV. The last may be left out.
var columns = []string{"namespace", "pool", "cidr", "clusterID", "claim", "parent"}

// WriteCSV writes rows under a header. A pool has no clusterID.
func WriteCSV(w io.Writer, rows []Row) error {
	lines := make([][]string, 0, len(rows)+1)
	lines = append(lines, columns)
	for _, r := range rows {
		lines = append(lines, []string{r.Namespace, r.Pool, r.CIDR.String(), r.ClusterID, r.Claim, r.Parent})
	}

	return csv.NewWriter(w).WriteAll(lines)
}

// ReadCSV reads what WriteCSV writes. Columns are found by their names, in any order.
func ReadCSV(data []byte, namespace string) ([]Row, error) {
	return readTable(data, columns[1:4], func(t *table) (Row, error) {
		r := Row{Namespace: t.get("namespace"), Pool: t.get("pool"), ClusterID: t.get("clusterID"), Claim: t.get("claim"), Parent: t.get("parent")}
		if r.Namespace == "" {
			r.Namespace = namespace
		}
		var err error
		if r.CIDR, err = parsePrefix(t.where(), "cidr", t.get("cidr")); err != nil {
			return r, err
		}

		err = r.check(t.where())

		return r, err
	})
}

// A table is a CSV file with a header, at one line.
type table struct {
	header, record []string
	line           int
}

func (t *table) where() string { return fmt.Sprintf("line %d", t.line) }

// get returns the field of a column, "" if there is no such column.
func (t *table) get(column string) string {
	if i := slices.IndexFunc(t.header, func(h string) bool { return strings.EqualFold(h, column) }); i >= 0 && i < len(t.record) {
		return strings.TrimSpace(t.record[i])
	}

	return ""
}

// readTable reads each line of a CSV file as a row. Some columns must be there.
func readTable(data []byte, needed []string, read func(*table) (Row, error)) ([]Row, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	r.FieldsPerRecord = -1
	t := &table{line: 1}
	var rows []Row
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, syntax(err)
		}
		t.line, _ = r.FieldPos(0)
		if t.header == nil {
			if err := t.begin(record, needed); err != nil {
				return nil, err
			}

			continue
		}
		t.record = record
		if len(record) > len(t.header) {
			return nil, &ParseError{t.where(), "", "", fmt.Sprintf("it has %d fields, and the header has %d", len(record), len(t.header)), "quote fields that contain a comma"}
		}
		row, err := read(t)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	if t.header == nil {
		return nil, &ParseError{"line 1", "", "", "there is no header", "begin with a line " + strings.Join(needed, ",")}
	}

	return rows, nil
}

func (t *table) begin(header, needed []string) error {
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
	}
	t.header = header
	for _, column := range needed {
		if !slices.ContainsFunc(header, func(h string) bool { return strings.EqualFold(h, column) }) {
			return &ParseError{t.where(), "", "", fmt.Sprintf("there is no column %s in %q", column, strings.Join(header, ",")), "add it to the header"}
		}
	}

	return nil
}

func syntax(err error) error {
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return &ParseError{fmt.Sprintf("line %d", bad.Line), "", "", bad.Err.Error(), "write it as CSV, with quotes around fields that contain quotes or commas"}
	}

	return err
}
