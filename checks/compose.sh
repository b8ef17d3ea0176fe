#!/usr/bin/env bash
# Starts deploy/compose.yaml whole, with a model that does what it is told, and does to it what operators and accidents do: workers are killed and
# replaced under runs, everything is taken down and up again, the database is brought back from a dump, and Restate is killed with its service.
# Images are taken as they are, or pulled; `agent` is built by deploy/Containerfile if it is not there.
#
#     checks/compose.sh                     with `docker compose`, or podman and `podman-compose`
#     COMPOSE=docker-compose checks/compose.sh
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
    echo "Compose was skipped: $1."
    exit 0
}

if [ -z "${COMPOSE:-}" ]; then
    if docker compose ls >/dev/null 2>&1; then COMPOSE="docker compose"; else COMPOSE=podman-compose; fi
fi
command -v "${COMPOSE%% *}" >/dev/null || skip "there is neither docker compose nor podman-compose"
engine=docker user=$(id -u)
if command -v podman >/dev/null; then engine=podman user=0; fi

dir=$(mktemp -d)
export CHECK_KEYS=$dir/keys AGENT_DB_PASSWORD=check COMPOSE_PROJECT_NAME=agent-check
mkdir "$CHECK_KEYS"
url=http://127.0.0.1:8080/api

compose() {
    # shellcheck disable=SC2086 # COMPOSE is words
    timeout 900 $COMPOSE -f deploy/compose.yaml -f checks/compose/compose.yaml --profile restate "$@" >>"$dir/log" 2>&1 </dev/null ||
        fail "compose $*: $(tail -3 "$dir/log")"
}

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

say() { echo "ok: $*"; }

containers() { $engine ps -q --filter "label=com.docker.compose.project=agent-check" --filter "label=com.docker.compose.service=$1"; }

finish() {
    status=$?
    [ -z "${health:-}" ] || kill "$health" || true
    [ "$status" -eq 0 ] || for one in server worker restate-agents; do containers "$one" | xargs -rn1 $engine logs --tail 5 >&2; done
    trap - EXIT
    (compose down -v) || true
    rm -rf "$dir"
    exit "$status"
}

api() { curl -sS -m 90 -H "Authorization: Bearer $key" -H 'Content-Type: application/json' "$url$1" "${@:2}"; }

# The value of a text in an answer, the first one of this name.
value() { grep -o "\"$1\":\"[^\"]*\"" | head -1 | cut -d'"' -f4; }

start() { api /agents/support/runs -d "{\"input\": \"$1\"}" | value run; }

# Waits until a run has this status.
comes_to() {
    for _ in $(seq 180); do
        [ "$(api "/runs/$1" | value status)" = "$2" ] && return
        sleep 0.5
    done
    fail "run $1 is not $2: $(api "/runs/$1")"
}

# Starts what is named (or all), and waits until the server takes work.
up() {
    compose up -d "$@"
    curl -sf --retry 60 --retry-delay 1 --retry-all-errors -o "$dir/ready" http://127.0.0.1:8080/ready 2>/dev/null || fail "the server is not ready"
}

# Answers the question that a run waits for, and waits for its end.
answered() {
    comes_to "$1" waiting
    digest=$(api "/runs/$1" | value digest)
    api "/runs/$1/answers" -d "{\"answers\": [{\"question\": \"c0/ask_user\", \"digest\": \"$digest\", \"value\": [\"A-17\"]}]}" >"$dir/answer"
    comes_to "$1" finished
    api "/runs/$1" | grep -q 'A-17' || fail "the answer did not arrive: $(api "/runs/$1")"
}

for image in postgres:17 otel/opentelemetry-collector:0.140.0 restatedev/restate:1.7 python:3.13-slim; do
    $engine image inspect "$image" >/dev/null 2>&1 || timeout 300 $engine pull -q "$image" >/dev/null 2>&1 || skip "$image cannot be had"
done
trap finish EXIT
$engine image inspect agent >/dev/null 2>&1 || compose build server
key=$($engine run --rm --user "$user" -v "$CHECK_KEYS:/keys" agent serve --new-key check --keys /keys/keys.json)
chmod a+rx "$dir" "$CHECK_KEYS" && chmod a+r "$CHECK_KEYS/keys.json"
# Podman leaves checks of health to systemd.
if [ "$engine" = podman ] && [ ! -d /run/systemd/system ]; then
    (while sleep 1; do containers db | xargs -rn1 podman healthcheck run || true; done) >/dev/null 2>&1 &
    health=$!
fi

up
api /agents/support/runs -N -H 'Accept: text/event-stream' -d '{"input": "hello"}' >"$dir/stream"
grep -q '^event: end' "$dir/stream" && grep -q '"status":"finished"' "$dir/stream" || fail "no run was streamed: $(cat "$dir/stream")"
answered "$(start ask)"
for _ in $(seq 30); do $engine logs "$(containers collector)" >"$dir/told" 2>&1 && grep -qi span "$dir/told" && break || sleep 1; done
grep -qi span "$dir/told" || fail "the collector was told nothing"
say "a run is streamed, a question is answered, and the collector hears of both"

# The image's entry is killed, so that the engine sees a crash.
run=$(start steps:20) && sleep 3
worker=$(api "/sessions/$run/entries" | value worker)
for one in $(containers worker); do
    if $engine logs "$one" 2>&1 | grep -q "$worker"; then kill -9 "$($engine inspect -f '{{.State.Pid}}' "$one")"; fi
done
comes_to "$run" finished
[ "$(api "/sessions/$run/entries" | grep -o '"worker":"[^"]*"' | sort -u | wc -l)" -ge 2 ] || fail "no other worker went on"
say "another worker goes on when one is killed"

runs=$(for _ in $(seq 6); do start steps:20; done) && sleep 2
up --force-recreate --no-deps worker
up --force-recreate --no-deps server
for run in $runs; do comes_to "$run" finished; done
say "workers and server are replaced under six runs"

run=$(start ask) && comes_to "$run" waiting
sessions=$(api /sessions | grep -o '"session":' | wc -l)
compose down
up
[ "$(api /sessions | grep -o '"session":' | wc -l)" = "$sessions" ] || fail "sessions were lost"
$engine exec "$(containers db)" pg_dump -U agent agent >"$dir/dump"
compose down -v
compose up -d db
for _ in $(seq 60); do $engine exec "$(containers db)" pg_isready -q -h localhost -U agent && break || sleep 1; done
$engine exec -i "$(containers db)" psql -q -o /dev/null -U agent -v ON_ERROR_STOP=1 agent <"$dir/dump"
up
answered "$run"
say "$sessions sessions outlive their containers, and come back from a dump into an empty database"

export AGENT_ENGINE=restate://restate:8080
up
for _ in $(seq 60); do run=$(start steps:20) && [ -n "$run" ] && break || sleep 1; done
sleep 3
for one in restate restate-agents; do kill -9 "$($engine inspect -f '{{.State.Pid}}' "$(containers $one)")"; done
comes_to "$run" finished
compose down
up
for _ in $(seq 60); do [ "$(api "/runs/$run" | value status)" = finished ] && break || sleep 1; done
comes_to "$run" finished
say "a run of Restate goes on when server and service are killed, and outlives their containers"
