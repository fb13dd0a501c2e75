package delivery_test

import (
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/delivery"
)

// subject is what the expressions of these tests are about.
const subject = `{"apiVersion": "v1", "kind": "T", "metadata": {"name": "a"}, "a": "aaaaaaaaaaaaaaaa", "one": 1, "list": ["x", "y"]}`

// ipv6 is the usual regular expression of an IPv6 address.
const ipv6 = "^(([0-9a-fA-F]{1,4}:){7,7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|" +
	"([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|" +
	"([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|" +
	"[0-9a-fA-F]{1,4}:((:[0-9a-fA-F]{1,4}){1,6})|:((:[0-9a-fA-F]{1,4}){1,7}|:)|fe80:(:[0-9a-fA-F]{0,4}){0,4}%[0-9a-zA-Z]{1,}|" +
	"::(ffff(:0{1,4}){0,1}:){0,1}((25[0-5]|(2[0-4]|1{0,1}[0-9]){0,1}[0-9])[.]){3,3}(25[0-5]|(2[0-4]|1{0,1}[0-9]){0,1}[0-9])|" +
	"([0-9a-fA-F]{1,4}:){1,4}:((25[0-5]|(2[0-4]|1{0,1}[0-9]){0,1}[0-9])[.]){3,3}(25[0-5]|(2[0-4]|1{0,1}[0-9]){0,1}[0-9]))$"

// repeated nests a step in an expression: each gets the result of the one before.
func repeated(start, step string, n int) string { return start + strings.Repeat(step, n) }

// TestExpressionLimits evaluates expressions that would use all memory or much time.
func TestExpressionLimits(t *testing.T) {
	// Which limit is reached first can depend on the machine.
	const limited = "it needs more computation than an expression may use|it takes longer than 2s"
	cases := map[string]struct{ reason, expression, fails string }{
		"Range":         {"One call makes a billion numbers.", "lists.range(1000000000).size() > 0", limited},
		"RangeOverflow": {"Two amounts of work that are too large to add.", "lists.range(999998)[0] + lists.range(9223372036854775807)[0] > 0", limited},
		"RangeDynamic":  {"The type of the argument is known when it is evaluated.", "lists.range(self.one * 1000000000).size() > 0", limited},
		"Replace":       {"The length is squared by each call.", repeated("['aaaaaaaaaaaaaaaa']", ".map(y, y.replace('a', y))", 6) + "[0].size() > 0", limited},
		"ReplaceLive":   {"Costs of calls with values of the object are not known in advance.", repeated("[self.a]", ".map(y, y.replace('a', y))", 6) + "[0].size() > 0", limited},
		"ReplaceEmpty":  {"Nothing is found between all characters.", repeated("[self.a]", ".map(y, y.replace('', y))", 6) + "[0].size() > 0", limited},
		"Join":          {"As does a list of itself.", repeated("[self.a]", ".map(y, [y + y + y + y, y + y + y + y].join(y))", 40) + "[0].size() > 0", limited},
		"JoinSeparator": {"The separator counts, too.", "lists.range(100000).map(i, self.a).join(lists.range(1000).map(i, self.a).join()).size() > 0", limited},
		"Text":          {"The length is doubled by each addition.", repeated("[self.a]", ".map(y, y + y)", 40) + "[0].size() > 0", limited},
		"List":          {"So is that of a list, which takes no memory until it is read.", repeated("[self.list]", ".map(y, y + y)", 60) + "[0].size() > 0", limited},
		"Nested":        {"Lists of one list take little memory, and very long to compare.", repeated("[self.list]", ".map(y, [y, y])", 60) + " == " + repeated("[self.list]", ".map(y, [y, y])", 60), limited},
		"Flatten":       {"Or to unfold.", repeated("[self.list]", ".map(y, [y, y])", 60) + ".flatten(60).size() > 0", limited},
		"In":            {"Or to look for.", "[self.list].map(y, [y, y]).exists(y, y in " + repeated("[self.list]", ".map(y, [y, y])", 40) + ") || " + repeated("[self.list]", ".map(y, [y, y])", 60) + "[0] in [" + repeated("[self.list]", ".map(y, [y, y])", 60) + "[0]]", limited},
		"Distinct":      {"Each is compared with each.", "lists.range(100000).distinct().size() > 0", limited},
		"Sets":          {"Here, too.", "sets.equivalent(lists.range(100000), lists.range(100000))", limited},
		"Sort":          {"Sorting writes a new list.", "lists.range(100000).map(i, lists.range(100000).sort()).size() > 0", limited},
		"Format":        {"A precision is a length.", "lists.range(1000).map(i, '%.999999f%.999999f%.999999f'.format([1.0, 1.0, 1.0])).size() > 0", limited},
		"FormatNested":  {"A list is written with everything in it.", "'%s'.format([" + repeated("[self.list]", ".map(y, [y, y])", 60) + "]).size() > 0", limited},
		"Literal":       {"A literal in a loop is built each time.", "lists.range(50000).map(i, [" + strings.Repeat("1,", 5000) + "1]).size() > 0", limited},
		"Loops":         {"Loops in loops.", "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, a + b + c >= 0)))", limited},
		"Matches":       {"A short regular expression can be large.", "self.a.matches('(" + strings.Repeat("abcdefghij", 100) + "){1000}')", limited},
		"MatchesNested": {"Repeats multiply.", "self.a.matches('((" + strings.Repeat("abcdefghij", 100) + "){30}){30}')", limited},
		"MatchesLong":   {"Each character can be compared with all repeats.", "lists.range(20000).map(i, self.a).join().matches('(a?){1000}b')", limited},
		"IndexOf":       {"Each character is compared with each.", repeated("[self.a]", ".map(y, y + y)", 16) + ".exists(t, t.indexOf(t.substring(0, 500000) + 'b') >= 0)", limited},
		"LastIndexOf":   {"Backwards, too.", repeated("[self.a]", ".map(y, y + y)", 16) + ".exists(t, t.lastIndexOf('b' + t.substring(0, 500000)) >= 0)", limited},
		"Hidden":        {"No other result makes up for an error of this kind.", "true || lists.range(1000000000).size() > 0 ? lists.range(1000000000).size() > 0 || true : true", limited},
		"Recursion":     {"An expression is nested only so far.", strings.Repeat("(", 1000) + "1" + strings.Repeat(")", 1000) + " == 1", "recursion"},
		"Long":          {"An expression is only so long.", "true" + strings.Repeat(" || true", 20000), "size"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			started := time.Now()
			f, err := delivery.NewFilter(tc.expression)
			if err == nil {
				_, err = f.Admits(subject, &metav1.ObjectMeta{})
			}
			took := time.Since(started)
			runtime.ReadMemStats(&after)
			if err == nil || !regexp.MustCompile(tc.fails).MatchString(err.Error()) {
				t.Errorf("%s\nerror %v, want %q", tc.reason, err, tc.fails)
			}
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 512 {
				t.Errorf("%s\nit used %d MiB", tc.reason, used)
			}
			if took > 20*time.Second { // on a busy machine
				t.Errorf("%s\nit took %s", tc.reason, took)
			}
		})
	}
}

// TestExpressionsWithinLimits keeps the functions that Eno has usable, for objects as
// large as they can be.
func TestExpressionsWithinLimits(t *testing.T) {
	items := make([]string, 10_000/slowdown)
	for i := range items {
		items[i] = fmt.Sprintf(`{"name": "item-%d", "labels": {"app": "shop", "tier": "backend"}, "image": "registry.example/team/image:%d"}`, i, i)
	}
	large := strings.TrimSuffix(subject, "}") + `, "items": [` + strings.Join(items, ",") + `], "text": "` + strings.Repeat("0123456789", 100_000) + `"}`
	for name, expression := range map[string]string{
		"Filter":   "self.items.filter(i, i.labels.app == 'shop' && i.image.startsWith('registry.example/')).size() == " + strconv.Itoa(len(items)),
		"Map":      "self.items.map(i, i.name).size() == " + strconv.Itoa(len(items)),
		"Exists":   "self.items.exists(i, i.name == 'item-" + strconv.Itoa(len(items)-1) + "')",
		"Matches":  "self.items.all(i, i.name.matches('^item-[0-9]+$'))",
		"IPv6":     "'2001:db8::1'.matches('" + ipv6 + "') && !'2001:db8::1::'.matches('" + ipv6 + "')",
		"Join":     "self.items.map(i, i.name).join(',').size() > " + strconv.Itoa(len(items)),
		"Replace":  "self.text.replace('0', 'zero').size() > 1000000",
		"Split":    "self.text.split('9').size() > 10000",
		"Text":     "(self.text + self.text).size() == 2000000",
		"Equal":    "self.items == self.items && self.items[0] != self.items[1]",
		"In":       "'x' in self.list && 'kind' in self && !('z' in self.list)",
		"Range":    "lists.range(3) == [0, 1, 2]",
		"Format":   "'%s-%d: %.2f'.format([self.kind, self.one, 1.5]) == 'T-1: 1.50'",
		"Sort":     "['b', 'a'].sort() == ['a', 'b'] && self.list.distinct().reverse() == ['y', 'x']",
		"SortBy":   "[{'n': 2}, {'n': 1}].sortBy(x, x.n)[0].n == 1",
		"Sets":     "sets.contains(self.list, ['x']) && sets.equivalent(self.list, ['y', 'x'])",
		"Flatten":  "[self.list, [1, [2]]].flatten() == ['x', 'y', 1, [2]]",
		"Mixed":    "{'a': 1, 'b': 'x'}.b == 'x' && [1, 'a', null].size() == 3",
		"Encoding": "base64.decode(base64.encode(b'abc')) == b'abc'",
		"Math":     "math.greatest(1, self.one, 3.5) == 3.5",
		"Optional": "self.?absent.orValue('d') == 'd' && self.?a.hasValue() && optional.of(1).optMap(x, x + 1).value() == 2",
		"Numbers":  "self.one < 1.5 && self.one == 1.0 && 7 % 4 == 3 && -self.one == -1",
		"Time":     "timestamp('2026-01-01T00:00:00Z') + duration('1h') > timestamp('2026-01-01T00:30:00Z')",
		"Ternary":  "(self.one > 0 ? 'yes' : 'no') == 'yes' && (self.absent == 1 || true)",
		"Text2":    "'  Abc '.trim().lowerAscii().reverse().substring(1).charAt(0) == 'b' && 'a-b'.indexOf('-') == 1",
		"Dynamic":  "dyn(self.list)[0] == 'x' && type(self.one) == int && string(self.one) == '1' && int('2') == 2",
	} {
		t.Run(name, func(t *testing.T) {
			f, err := delivery.NewFilter(expression)
			if err != nil {
				t.Fatal(err)
			}
			if holds, err := f.Admits(large, &metav1.ObjectMeta{}); err != nil || !holds {
				t.Errorf("%s: %t, %v", expression, holds, err)
			}
		})
	}
}

// TestExpressionValueLimit has an expression compute a value that no manifest can have.
func TestExpressionValueLimit(t *testing.T) {
	r, err := delivery.NewReader().Read(overridden(t, `[{path: self.spec.replicas, valueExpression: "`+repeated("[1]", ".map(y, [y, y])", 60)+`"}]`), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, states, err := r.Override(&unstructured.Unstructured{Object: map[string]any{}}, &metav1.ObjectMeta{})
	if err != nil || len(states) != 1 || states[0].State != delivery.InvalidValueExpression || !strings.Contains(states[0].Reason, "cannot use a value of more than") {
		t.Errorf("states %v, %v", states, err)
	}
}

// TestReadinessLimit has a readiness expression that exceeds a limit reported, since it can
// never be met. Other errors are not: what an expression asks for may come.
func TestReadinessLimit(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{}}
	r := read(t, with("T", enov1.AnnotationReadiness, "lists.range(1000000000).size() > 0"))
	if _, ok, err := r.Ready(live, &metav1.ObjectMeta{}, time.Now()); ok || err == nil || !strings.Contains(err.Error(), "annotation eno.azure.io/readiness: it needs more computation") {
		t.Errorf("ready %t, %v", ok, err)
	}
	r = read(t, with("T", enov1.AnnotationReadiness, "self.status.ready"))
	if _, ok, err := r.Ready(live, &metav1.ObjectMeta{}, time.Now()); ok || err != nil {
		t.Errorf("ready %t, %v", ok, err)
	}
}

// FuzzExpression compiles and evaluates any text. It ends, and does not panic.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"self.kind == 'T'", "lists.range(1000000000)", "[self.a].map(y, y.replace('a', y)).map(y, y.replace('a', y))", "self.?x.orValue(1) in [1]",
		"'%.9f'.format([1.0])", "{'a': [1, {'b': self}]}.a.exists(x, x == self)", "self.list.join('a').matches('(a{2}){3}')", "((((", "self.", "\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := delivery.NewFilter(text)
		if err != nil {
			return
		}
		started := time.Now()
		_, _ = filter.Admits(subject, &metav1.ObjectMeta{}) // any answer is fine
		if took := time.Since(started); took > 30*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
