#!/usr/bin/env bash
# Runs the clients of others against a served agent: AG-UI's, OpenAI's SDKs in Python and Node, the AI SDK's, those of Agent2Agent, the Model
# Context Protocol and the Agent Client Protocol. They
# are fetched from npm and PyPI once, and kept below target. A warning of one of them fails this program.
#
#     checks/protocols.sh [ag_ui.mjs openai_sdk.py ..]
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(@ag-ui/client@1.0.0 openai@6 ai@6 @modelcontextprotocol/sdk@1.32.2)
wheels=(openai==3.57.0 a2a-sdk==1.3.0 agent-client-protocol==0.12.1 httpx)
tools=target/protocols
chosen=("$@")
[ "$#" -gt 0 ] || chosen=(ag_ui.mjs openai_sdk.py openai.mjs ai.mjs a2a_sdk.py mcp.mjs acp_sdk.py)

skip() {
    echo "The clients of others were skipped: $1."
    exit 0
}

command -v npm >/dev/null || skip "there is no npm"
wanted="${packages[*]} ${wheels[*]}"
if [ "$(cat "$tools/version" 2>/dev/null)" != "$wanted" ]; then
    mkdir -p "$tools"
    npm install --silent --no-audit --no-fund --prefix "$tools" "${packages[@]}" || skip "npm cannot get them"
    python3 -m venv "$tools/python" && "$tools/python/bin/pip" install -q "${wheels[@]}" || skip "pip cannot get them"
    echo "$wanted" >"$tools/version"
fi

tests=$(cargo test --workspace --test server --no-run --message-format=json-render-diagnostics | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
"$tests" protocols::served::until_it_is_killed --ignored --exact >/dev/null 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
for _ in $(seq 600); do
    (: </dev/tcp/127.0.0.1/19112) 2>/dev/null && break
    kill -0 "$server" 2>/dev/null || { echo "The server ended: is port 19112 taken?"; exit 1; }
    sleep 0.1
done

export SERVER=http://127.0.0.1:19112
if [ -z "${AGENT:-}" ]; then
    # With the tests, so that nothing is built for another set of features than theirs.
    cargo build --quiet --workspace --bins --tests
    export AGENT=${CARGO_TARGET_DIR:-$PWD/target}/debug/agent
fi
failed=0
for client in "${chosen[@]}"; do
    # Node looks for packages beside the script.
    cp "checks/protocols/$client" "$tools/$client"
    case "$client" in
    *.py) "$tools/python/bin/python" -W error::UserWarning "$tools/$client" || failed=1 ;;
    *) node "$tools/$client" || failed=1 ;;
    esac
done
exit "$failed"
