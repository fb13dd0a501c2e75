package monitoring_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	comparison = regexp.MustCompile(`(>=|>|==|<) ([0-9.]+)`)
	matchers   = regexp.MustCompile(`\{[^}]*\}`)
	labelLists = regexp.MustCompile(`\b(by|on) \(([^)]*)\)`)
	window     = regexp.MustCompile(`\[5m\]`)
)

// breakages returns a rule with one thing wrong at a time, by what it is.
func breakages(t *testing.T, r rule) map[string]rule {
	t.Helper()
	all := map[string]rule{}
	with := func(how string, change func(*rule)) {
		b := r
		change(&b)
		all[how] = b
	}
	// expr changes what is found at a place of the expression.
	expr := func(how string, at []int, into string) {
		with(fmt.Sprintf("%s at %d", how, at[0]), func(b *rule) { b.Expr = r.Expr[:at[0]] + into + r.Expr[at[1]:] })
	}

	if r.Alert != "" {
		with("never fires", func(b *rule) { b.Expr = "vector(1) > 2" })
		with("has no severity", func(b *rule) { b.Labels = nil })
		wait, err := time.ParseDuration(r.For)
		if err != nil {
			t.Fatalf("cannot read how long %s waits: %v", r.Alert, err)
		}
		with("fires too late", func(b *rule) { b.For = fmt.Sprintf("%.0fs", (wait + time.Minute).Seconds()) })
		with("fires too early", func(b *rule) { b.For = fmt.Sprintf("%.0fs", (wait - time.Minute).Seconds()) })
	} else {
		with("doubles", func(b *rule) { b.Expr = "2 * (" + r.Expr + ")" })
		with("vanishes", func(b *rule) { b.Expr = "vector(1) > 2" })
	}

	for _, at := range comparison.FindAllStringSubmatchIndex(r.Expr, -1) {
		operator, number := r.Expr[at[2]:at[3]], r.Expr[at[4]:at[5]]
		limit, err := strconv.ParseFloat(number, 64)
		switch {
		case err != nil:
			t.Fatalf("cannot read the number %s: %v", number, err)
		case limit != 0:
			expr("has a limit too high", at, fmt.Sprintf("%s %g", operator, limit*1.25))
			expr("has a limit too low", at, fmt.Sprintf("%s %g", operator, limit*0.75))
		case operator == ">":
			expr("takes nothing for something", at, ">= 0")
			expr("takes one for nothing", at, "> 1")
		default:
			expr("lets NaN pass", at, "")
		}
	}
	for _, at := range matchers.FindAllStringIndex(r.Expr, -1) {
		expr("selects everything", at, "")
	}
	for _, at := range labelLists.FindAllStringSubmatchIndex(r.Expr, -1) {
		labels := strings.Split(r.Expr[at[4]:at[5]], ", ")
		for i, l := range labels {
			rest := append(append([]string{}, labels[:i]...), labels[i+1:]...)
			expr("forgets "+l, at[4:6], strings.Join(rest, ", "))
		}
	}
	for _, at := range window.FindAllStringIndex(r.Expr, -1) {
		expr("looks back too far", at, "[20m]")
	}

	return all
}
