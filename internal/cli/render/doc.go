// Package render writes results for people: styles and widths of a terminal, trees, tables, findings and
// progress. It decides nothing, and reads nothing but the environment of the terminal.
package render
