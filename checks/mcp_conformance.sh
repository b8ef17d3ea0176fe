#!/usr/bin/env bash
# Runs the conformance suite of the Model Context Protocol, all of it, against the client and the server. It is fetched from npm once, and kept
# below target. What may fail there, and why, is in mcp_conformance.yml; anything else fails this program.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.1.16
tools=target/mcp-conformance
expected=checks/mcp_conformance.yml

skip() {
    echo "The conformance suite of MCP was skipped: $1."
    exit 0
}

command -v npm >/dev/null || skip "there is no npm"
if [ "$(cat "$tools/version" 2>/dev/null)" != "$version" ]; then
    packages=("@modelcontextprotocol/conformance@$version")
    # The suite needs a Node that has fs.globSync.
    node -e 'process.exit(require("fs").globSync ? 0 : 1)' 2>/dev/null || packages+=(node@22)
    mkdir -p "$tools"
    npm install --silent --no-audit --no-fund --prefix "$tools" "${packages[@]}" || skip "npm cannot get it"
    echo "$version" >"$tools/version"
fi
node=$PWD/$tools/node_modules/.bin/node
[ -x "$node" ] || node=node
suite=("$node" "$PWD/$tools/node_modules/@modelcontextprotocol/conformance/dist/index.js")

tests=$(cargo test --workspace --test tools --no-run --message-format=json-render-diagnostics | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')

work=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT
cat >"$work/client" <<END
#!/bin/sh
MCP_SERVER_URL="\$1" exec "$tests" mcp::conformance::client --ignored --exact --nocapture
END
chmod +x "$work/client"

failed=0
# One after the other: a scenario measures how long the client waits.
for scenario in $("${suite[@]}" list | sed -n '/^Client/,$s/^  - \([^ ]*\).*/\1/p'); do
    run=("${suite[@]}" client --command "$work/client" --scenario "$scenario" --expected-failures "$expected")
    if "${run[@]}" >"$work/log" 2>&1; then
        grep -q "^ *- $scenario\$" "$expected" && result="failed, as expected" || result=passed
        echo "client $scenario: $result"
    else
        cat "$work/log"
        echo "client $scenario: FAILED"
        failed=1
    fi
done

"$tests" mcp::conformance::server --ignored --exact >/dev/null 2>&1 &
server=$!
for _ in $(seq 600); do
    (: </dev/tcp/127.0.0.1/19111) 2>/dev/null && break
    kill -0 "$server" 2>/dev/null || { echo "The server ended: is port 19111 taken?"; exit 1; }
    sleep 0.1
done
if "${suite[@]}" server --url http://127.0.0.1:19111/mcp --suite all --expected-failures "$expected" >"$work/log" 2>&1; then
    sed -n 's/^[^a-z]* \([a-z0-9-]*\): \([0-9]* passed, [0-9]* failed\).*/server \1: \2/p' "$work/log"
else
    cat "$work/log"
    failed=1
fi
exit "$failed"
