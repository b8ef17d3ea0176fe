#!/usr/bin/env bash
# Runs the client against servers of the Model Context Protocol that others wrote, over standard input and output and over HTTP, and does to them
# what happens to servers: they are killed, they hang, they write what is no message. They are fetched from npm once, and kept below target.
#
#     checks/mcp_servers.sh            fetches them if they are not there, and runs the tests
#     checks/mcp_servers.sh --install  only fetches them, for a test of examples/agents/file-organiser.yaml
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(server-everything@2026.8.31 server-filesystem@2026.8.31 server-memory@2026.8.31)
tools=target/mcp-servers

skip() {
    echo "The MCP servers of others were skipped: $1."
    exit 0
}

command -v npm >/dev/null || skip "there is no npm"
if [ "$(cat "$tools/version" 2>/dev/null)" != "${packages[*]}" ]; then
    mkdir -p "$tools"
    npm install --silent --no-audit --no-fund --prefix "$tools" "${packages[@]/#/@modelcontextprotocol/}" || skip "npm cannot get them"
    echo "${packages[*]}" >"$tools/version"
fi

[ "${1:-}" != --install ] || exit 0

tests=$(cargo test --workspace --test tools --no-run --message-format=json-render-diagnostics | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
MCP_SERVERS=$PWD/$tools/node_modules/.bin "$tests" mcp::real:: --ignored
