#!/usr/bin/env bash
# T-Rex's scenario: three processes that know nothing of each other but the address of a server deploy a rule, subscribe
# to what it finds, and publish events: ./three_processes.sh http://127.0.0.1:8787
set -euo pipefail
cd "$(dirname "$0")"
server=${1:-http://127.0.0.1:8787}
weft=${WEFT:-weft}

$weft deploy fire.tesla --to "$server"

# Another process: with an empty id it begins with what the server's log has, so it does not matter who is first.
$weft subscribe Fire --from "$server" --where "area = 'hall'" --after "" --count 1 &
subscriber=$!

$weft publish events.jsonl --to "$server"

wait "$subscriber"
$weft deploy --remove Fire --to "$server"
