#!/usr/bin/env bash
# Runs the conformance suite of the Model Context Protocol against the client and the server. It is fetched from npm.
# What may fail there, and why, is in mcp_conformance.yml; anything else fails this program.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.1.13
work=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT
npm install --silent --no-audit --no-fund --prefix "$work" "@modelcontextprotocol/conformance@$version"
suite="$work/node_modules/.bin/conformance"

cargo test --quiet -p agent-tools --features mcp --test mcp --no-run
tests=$(cargo test -p agent-tools --features mcp --test mcp --no-run 2>&1 | sed -n 's/.*(\(.*\)).*/\1/p' | tail -1)

cat >"$work/client" <<END
#!/bin/sh
MCP_SERVER_URL="\$1" exec "$PWD/$tests" conformance::client --ignored --exact --nocapture
END
chmod +x "$work/client"
failed=0
for scenario in $("$suite" list | sed -n '/^Client/,$s/^  - //p'); do
    if "$suite" client --command "$work/client" --scenario "$scenario" >"$work/log" 2>&1; then
        echo "client $scenario: passed"
    elif sed -n '/^client:/,/^server:/p' checks/mcp_conformance.yml | grep -q "^  - $scenario\$"; then
        echo "client $scenario: failed, as expected"
    else
        cat "$work/log"
        failed=1
    fi
done

"$PWD/$tests" conformance::server --ignored --exact >/dev/null 2>&1 &
server=$!
until curl --silent --output /dev/null http://127.0.0.1:39111/mcp; do sleep 0.1; done
"$suite" server --url http://127.0.0.1:39111/mcp --expected-failures checks/mcp_conformance.yml || failed=1
exit "$failed"
