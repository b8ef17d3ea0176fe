#!/usr/bin/env bash
# The front ends of examples/front-ends in a real browser, each started by its one command in front of `agent serve`. The browser is the
# package chromium; packages are fetched from npm once, and kept below target.
#
#     checks/front_ends.sh
set -euo pipefail
cd "$(dirname "$0")/.."

home=$PWD/target/front-ends
export FRONT_ENDS=$home STUDIO_PACKAGES=$home/tests

skip() {
    echo "The front ends were not tested in a browser: $1."
    exit 0
}

command -v npm >/dev/null || skip "there is no npm"
export CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
[ -n "$CHROMIUM" ] || skip "there is no chromium"
mkdir -p "$home"
cp examples/front-ends/serve.mjs "$home/"
for front_end in ai-sdk copilotkit tests; do
    from=examples/front-ends/$front_end to=$home/$front_end
    mkdir -p "$to"
    cmp -s "$from/package.json" "$to/installed.json" && fresh=yes || fresh=no
    cp "$from"/* "$to/"
    if [ "$fresh" = no ]; then
        # Only what builds the pages runs a program of its own when it is installed.
        (cd "$to" && npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts && npm rebuild --silent esbuild) ||
            skip "npm cannot get what $front_end needs"
        cp "$from/package.json" "$to/installed.json"
    fi
done
if [ -z "${AGENT:-}" ]; then
    cargo build --quiet -p agent-cli
    export AGENT=${CARGO_TARGET_DIR:-$PWD/target}/debug/agent
fi
# The scripts stay where they are: the harness of the studio is beside them.
node --test --test-concurrency=1 examples/front-ends/tests/front_ends.test.mjs
