#!/usr/bin/env bash
# Runs the conformance suite of the Model Context Protocol against the client and the server, for each revision that it distinguishes:
# with a handshake, and without. It is fetched from npm once, and kept below target. What may fail there, and why, is in
# mcp_conformance.yml and mcp_conformance_stateless.yml; anything else fails this program.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.2.0-alpha.12
tools=target/mcp-conformance

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

# The suite writes its results into the current folder.
work=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT
tests=${TOOLS_TESTS:-$(cargo test --workspace --test tools --no-run --message-format=json-render-diagnostics | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')}
cat >"$work/client" <<END
#!/bin/sh
MCP_SERVER_URL="\$1" exec "$tests" mcp::conformance::client --ignored --exact --nocapture
END
chmod +x "$work/client"

"$tests" mcp::conformance::server --ignored --exact >/dev/null 2>&1 &
server=$!
for _ in $(seq 600); do
    (: </dev/tcp/127.0.0.1/19111) 2>/dev/null && break
    kill -0 "$server" 2>/dev/null || { echo "The server ended: is port 19111 taken?"; exit 1; }
    sleep 0.1
done

failed=0
run() { # role, scenario, revision, expected failures, arguments of the role
    local role=$1 scenario=$2 revision=$3 expected=$4
    shift 4
    if (cd "$work" && "${suite[@]}" "$role" "$@" --scenario "$scenario" --spec-version "$revision" --expected-failures "$expected") >"$work/log" 2>&1; then
        grep -q "^ *- $scenario\$" "$expected" && result="failed, as expected" || result=passed
        echo "$revision $role $scenario: $result"
    else
        cat "$work/log"
        echo "$revision $role $scenario: FAILED"
        failed=1
    fi
}
# Names of the scenarios of a role for a revision.
scenarios() {
    "${suite[@]}" list | sed -n "/^$1 scenarios/,/^\$/s/^  - \([^ ]*\) \[\(.*\)\]\$/\1 \2/p" | awk -v revision="$2" 'index("," $2 ",", "," revision ",") { print $1 }'
}
# One after the other: a scenario measures how long the client waits.
for revision in 2025-11-25 2026-07-28; do
    expected=$PWD/checks/mcp_conformance.yml
    [ "$revision" = 2025-11-25 ] || expected=$PWD/checks/mcp_conformance_stateless.yml
    for scenario in $(scenarios Client "$revision"); do
        run client "$scenario" "$revision" "$expected" --command "$work/client"
    done
    for scenario in $(scenarios Server "$revision"); do
        run server "$scenario" "$revision" "$expected" --url http://127.0.0.1:19111/mcp
    done
done
exit "$failed"
