#!/usr/bin/env bash
# The front ends of examples/front-ends in a real browser, each started by its one command in front of `agent serve`. The browser is the
# package chromium; packages are fetched from npm once, and kept below target.
#
#     checks/front_ends.sh
set -euo pipefail
cd "$(dirname "$0")/.."

export FRONT_ENDS=$PWD/target/front-ends STUDIO_PACKAGES=$PWD/target/studio

skip() {
    echo "The front ends were not tested in a browser: $1."
    exit 0
}

# Installs what a package.json names, unless it is there.
packages() {
    mkdir -p "$2"
    ! cmp -s "$1/package.json" "$2/package.json" || return 0
    cp "$1/package.json" "$2/package.json"
    npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts --prefix "$2" && return 0
    rm "$2/package.json"
    skip "npm cannot get what $1 needs"
}

command -v npm >/dev/null || skip "there is no npm"
export CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
[ -n "$CHROMIUM" ] || skip "there is no chromium"
packages agent-server/studio/tests "$STUDIO_PACKAGES"
for front_end in ai-sdk copilotkit; do
    packages "examples/front-ends/$front_end" "$FRONT_ENDS/$front_end"
    cp "examples/front-ends/$front_end"/*.{mjs,jsx} "$FRONT_ENDS/$front_end/"
done
cp examples/front-ends/serve.mjs "$FRONT_ENDS/"
if [ -z "${AGENT:-}" ]; then
    cargo build --quiet --workspace --bins
    export AGENT=${CARGO_TARGET_DIR:-$PWD/target}/debug/agent
fi
node --test --test-concurrency=1 examples/front-ends/tests/*.test.mjs
