package words_test

import "regexp"

// A place is a kind of text. Places are combined as bits.
type place uint

const (
	inDocs     place = 1 << iota // Markdown, without code
	inComments                   // comments of Go, YAML, shell and Makefile
	inStrings                    // strings of Go programs that contain a space: commands, flags, errors, events
	inCRDs                       // descriptions of CRDs, texts of alerts
	everywhere = inDocs | inComments | inStrings | inCRDs
)

// A rule is a row of the glossary, and how to find what it replaces.
type rule struct {
	write, not, reason string

	in      place
	stems   []string       // every match has one of them; they are found faster than patterns
	pattern *regexp.Regexp // of texts in lower case
	unless  *regexp.Regexp // matches that are fine
}

// table is the glossary. A pattern may miss uses; it must not match what is correct.
var table = []rule{
	{
		write: "permissions, RBAC", not: "rights", reason: "Kubernetes calls them so.",
		in: everywhere, stems: []string{"rights"},
		pattern: regexp.MustCompile(`\brights\b`),
	},
	{
		write: "CRD", not: "definition", reason: "A definition may be anything.",
		in: everywhere, stems: []string{"definition"},
		pattern: regexp.MustCompile(`\bdefinitions?\b`),
	},
	{
		write: "fix, repair", not: "mend", reason: "The usual word is found by a search.",
		in: everywhere, stems: []string{"mend"},
		pattern: regexp.MustCompile(`\bmend(?:s|ed|ing)?\b`),
	},
	{
		write: "delete, remove, prune, evict, preempt, release, disappear", not: "go, goes, is to go, send away, let go", reason: "Each of them is another operation.",
		in: everywhere, stems: []string{"go", "sen"},
		pattern: regexp.MustCompile(`\bgoes\b|\b(?:is|are|was|were|has|have|had) to go\b|\b(?:may|can|must|should) go\b|\bsen[dt]s? away\b|\blets? (?:\w+ )?go\b`),
	},
	{
		write: "another field manager, the user, the kubelet, another replica, the caller", not: "somebody, nobody, whoever, whom", reason: "Name the actor.",
		in: everywhere, stems: []string{"body", "whoever", "whom"},
		pattern: regexp.MustCompile(`\b(?:some|no|any|every)body\b|\bwhoever\b|\bwhom\b`),
	},
	{
		write: "other field managers, other objects, the rest", not: "others", reason: "Name the actor.",
		in: everywhere, stems: []string{"others"},
		pattern: regexp.MustCompile(`\bothers\b`),
	},
	{
		write: "the client that, the field manager that", not: "who, for a program", reason: "People are users who do something; programs and objects are not.",
		in: everywhere, stems: []string{"who"},
		pattern: regexp.MustCompile(`(?:[\w-]+ )?\bwho\b`),
		unless:  regexp.MustCompile(`^(?:users?|people|person|teams?|operators?|tenants?|administrators?|admins?|engineers?|readers?|maintainers?|contributors?|reporters?|anyone|someone|those|one|members?|developers?|authors?) who`),
	},
	{
		write: "allocate, free", not: "hand out, give back", reason: "Blocks are allocated and freed.",
		in: everywhere, stems: []string{"hand", "back"},
		pattern: regexp.MustCompile(`\bhand(?:s|ed|ing)? out\b|\bg(?:ive|ives|ave|iven|iving) back\b`),
	},
	{
		write: "rejected (admission), denied (authorization), fails", not: "refused, not let in", reason: "The reader looks for the HTTP status or the event.",
		in: everywhere, stems: []string{"refus", "let in"},
		pattern: regexp.MustCompile(`(?:connection )?\brefus(?:e|es|ed|al|als|ing)\b|\bnot let in\b`), unless: regexp.MustCompile(`^connection `),
	},
	{
		write: "component", not: "part (of Arbor)", reason: "The labels and the values of the chart call it component.",
		in: everywhere, stems: []string{"part"},
		pattern: regexp.MustCompile(`\bparts? of arbor\b|\bparts? (?:podgroups|subnets|delivery|compositions|scheduler)\b|\bswitch(?:es|ed)? (?:a |the |off |on )+parts?\b`),
	},
	{
		write: "reports, logs, records, returns, shows, specifies", not: "says, tells, is told, in words", reason: "A log line is not found where a status was written.",
		in: everywhere, stems: []string{"sa", "tell", "told", "word"},
		pattern: regexp.MustCompile(`\bsa(?:y|ys|id)\b|\bt(?:ell|ells|old)\b|\bwithout a word\b|\bin (?:a|one|other|its|their|plain) (?:own )?words?\b`),
	},
	{
		write: "invalid, not a CIDR, missing", not: "is none, is no …", reason: "It is read as \"there is no …\".",
		in: everywhere, stems: []string{"none", " no"},
		pattern: regexp.MustCompile(`(?:\bthere |\bwhere )?\b(?:is|are|was|were|be) (?:none\b|no(?:-| \w+\b))`),
		unless:  regexp.MustCompile(`^(?:there|where) |no (?:longer|more|less|fewer|later|earlier|larger|smaller|older|newer|better|worse|different|matter|one)$|no-`),
	},
	{
		write: "again, next to, forever, until then", not: "anew, beside, for ever, meanwhile", reason: "Plain words.",
		in: everywhere, stems: []string{"anew", "beside", "for ever", "meanwhile"},
		pattern: regexp.MustCompile(`\banew\b|\bbeside\b|\bfor ever\b|\bmeanwhile\b`),
	},
	{
		write: "back-off, retry, requeue", not: "patience, look again", reason: "Kubernetes calls them so.",
		in: everywhere, stems: []string{"patien", "again"},
		pattern: regexp.MustCompile(`\bpatien(?:t|ce|tly)\b|\blook(?:s|ed|ing)? again\b`),
	},
	{
		write: "reconcile, sync, resync, read, check", not: "look at, mind", reason: "A reader wants to know whether anything is written.",
		in: everywhere, stems: []string{"look", "mind"},
		pattern: regexp.MustCompile(`\blook(?:s|ed|ing) at\b|(?:\bin )?\bmind(?:s|ed)?\b`), unless: regexp.MustCompile(`^in mind$`),
	},
	{
		write: "status, phase, message, reason; check, validate", not: "verdict, sentence; judge", reason: "Name the field that holds it.",
		in: everywhere, stems: []string{"verdict", "sentence", "judg"},
		pattern: regexp.MustCompile(`\bverdicts?\b|\bsentences?\b|\bjudg(?:e|es|ed|ing|ment|ments)\b`),
	},
	{
		write: "victim, surplus, reservation, nomination", not: "those who go, further ones, what is kept", reason: "They are terms of the scheduler.",
		in: everywhere, stems: []string{"those", "further ones", "kept"},
		pattern: regexp.MustCompile(`\bthose (?:who|that) go\b|\bfurther ones\b|\bwhat is kept\b`),
	},
	{
		write: "capacity, space; room for capacity on nodes for a gang", not: "room for anything else", reason: "The scheduler uses it as a term.",
	},
	{
		write: "applies to, is about", not: "speaks of", reason: "Objects do not speak.",
		in: everywhere, stems: []string{"of"},
		pattern: regexp.MustCompile(`\bspeaks? of\b`),
	},
	{
		write: "healthy", not: "well", reason: "It is the word of probes and conditions.",
		in: everywhere, stems: []string{"well"},
		pattern: regexp.MustCompile(`\b(?:is|are|was|were) well\b`),
	},
	{
		write: "must, should", not: "is to (be)", reason: "A requirement differs from a recommendation.",
		in: everywhere, stems: []string{" to "},
		pattern: regexp.MustCompile(`\b(?:is|are|was|were) to (?:be|own|have|stay|get|become|hold|wait|keep|do)\b`),
	},
	{
		write: "a sentence with a subject", not: "What …, Who … as a title", reason: "A clause without a verb is parsed twice.",
		in: everywhere, stems: []string{"what", "who"},
		pattern: regexp.MustCompile(`^(?:what|who)\b[^.:?]*(?:[.:]|$)`),
	},
	{
		write: "Name is X. Name reports whether X.", not: "Name : X", reason: "Godoc form.",
		in: inComments | inCRDs, stems: []string{" : "},
		pattern: regexp.MustCompile(`^\w+ : `),
	},
	{
		write: "the name of the thing in its field", not: "perch, limb, twig, crown, bury, orphanage, estate", reason: "Metaphors are not names.",
		in: everywhere, stems: []string{"perch", "limb", "twig", "crown", "bur", "orphanage", "estate"},
		pattern: regexp.MustCompile(`\bperch\w*\b|\blimbs?\b|\btwigs?\b|\bcrowns?\b|\bbur(?:y|ies|ied)\b|\borphanages?\b|\bestates?\b`),
	},
	{
		write: "American spelling: behavior, license, utilization", not: "behaviour, licence, utilisation", reason: "Kubernetes uses it.",
		in: everywhere, stems: []string{"our", "licence", "centre", "artefact", "grey", "cancell", "labelled", "modelled", "catalogue", "is"},
		pattern: regexp.MustCompile(`\b(?:colour|honour|favour|behaviour|neighbour|licence|centre|artefact|grey\b|cancelled|cancelling|labelled|modelled|catalogue|(?:util|recogn|organ|initial|serial|normal|summar|author|optim|synchron|minim|maxim|prior|categor|final)is(?:e|ed|es|ing|ation)\b)\w*`),
	},
}
