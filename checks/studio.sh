#!/usr/bin/env bash
# The studio in a real browser: what people do in it, with the keyboard alone, on a phone, with axe, and with 50,000 entries. The browser is the
# package chromium; what drives it is fetched from npm once, and kept below target.
#
#     checks/studio.sh             all tests
#     checks/studio.sh --pictures  and the pictures of the documentation
#
# With STUDIO_FROM_DISK=1 the page is served as it is on disk, in front of the program: a change of it needs no build.
set -euo pipefail
cd "$(dirname "$0")/.."

tests=agent-server/studio/tests
export STUDIO_PACKAGES=$PWD/target/studio

skip() {
    echo "The studio was not tested in a browser: $1."
    exit 0
}

"$tests/../vendor.sh" --check
command -v node >/dev/null || skip "there is no node"
node --test "$tests"/unit/*.test.mjs

export CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
[ -n "$CHROMIUM" ] || skip "there is no chromium"
if ! cmp -s "$tests/package.json" "$STUDIO_PACKAGES/package.json"; then
    mkdir -p "$STUDIO_PACKAGES"
    cp "$tests/package.json" "$STUDIO_PACKAGES/package.json"
    npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts --prefix "$STUDIO_PACKAGES" ||
        { rm "$STUDIO_PACKAGES/package.json"; skip "npm cannot get what drives it"; }
fi
if [ "${1:-}" = --pictures ]; then
    export STUDIO_PICTURES=$PWD/docs/images
    mkdir -p "$STUDIO_PICTURES"
fi
if [ -z "${AGENT:-}" ]; then
    cargo build --quiet --workspace --bins
    export AGENT=${CARGO_TARGET_DIR:-$PWD/target}/debug/agent
fi
# The test of the server that has a large session.
STUDIO_SERVER=${STUDIO_SERVER:-$(cargo test --workspace --test server --no-run --message-format=json-render-diagnostics |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')}
export STUDIO_SERVER
node --test --test-concurrency=1 "$tests"/browser/*.test.mjs
