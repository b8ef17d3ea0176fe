#!/usr/bin/env bash
# Runs the reference validator of Agent Skills over the skills of this repository, and compares its verdicts on further skills with
# those of `Skill::violations`. It is fetched from PyPI once, and kept below target.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.1.1
tools=target/skills-ref

skip() {
    echo "The reference validator of Agent Skills was skipped: $1."
    exit 0
}

if [ "$(cat "$tools/version" 2>/dev/null)" != "$version" ]; then
    mkdir -p "$tools"
    python3 -m venv "$tools/python" && "$tools/python/bin/pip" install -q "skills-ref==$version" || skip "pip cannot get it"
    echo "$version" >"$tools/version"
fi
validator=$tools/python/bin/agentskills

failed=0
while read -r skill; do
    "$validator" validate "$(dirname "$skill")" || failed=1
done < <(git ls-files '*/SKILL.md')

tests=$(cargo test --workspace --test tools --no-run --message-format=json-render-diagnostics | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SKILLS=$work "$tests" skills::write_skills_for_the_reference_validator --ignored --exact >/dev/null
while read -r verdict skill; do
    told=invalid
    if "$validator" validate "$work/$skill" >/dev/null 2>&1; then told=valid; fi
    [ "$told" = "$verdict" ] || { echo "$skill: the reference says $told, and Skill::violations says $verdict"; failed=1; }
done <"$work/verdicts"
[ "$failed" = 0 ] && echo "skills: passed"
exit "$failed"
