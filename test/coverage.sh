#!/usr/bin/env bash
# Checks what is promised about coverage: of the validation by unit tests, and
# of the webhooks by tests on the real API server. Both are statements.
set -euo pipefail
dir=$1
module=$(go list -m)

# covered PROFILE PATTERN: percentage of the statements in files that match.
covered() {
	awk -v pattern="$2" '
		NR > 1 && $1 ~ pattern { if (!($1 in n)) { n[$1] = $2 } if ($3 > 0) { hit[$1] = 1 } }
		END { for (b in n) { all += n[b]; if (b in hit) some += n[b] } printf "%.1f", all ? 100 * some / all : 0 }' "$1"
}

# promise NAME PERCENT LEAST
promise() {
	printf 'coverage of %s: %s%% (promised: %s%%)\n' "$1" "$2" "$3"
	awk -v got="$2" -v least="$3" 'BEGIN { exit got >= least ? 0 : 1 }'
}

go tool covdata textfmt -i="$dir/processes" -o="$dir/processes.out"
promise "the validation" "$(covered "$dir/unit.out" "^$module/(engine/podtree|internal/decide/podgroup)/")" 90
promise "the webhooks, by integration tests" "$(covered "$dir/processes.out" "^$module/internal/webhook/")" 80
