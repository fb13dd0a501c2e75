// Package metric has the metrics of the delivery. Their names and labels are those of Eno.
package metric
