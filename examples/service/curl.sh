#!/usr/bin/env bash
# Deploy a rule on a server, publish events and receive matches, with curl alone: ./curl.sh http://127.0.0.1:8787
set -euo pipefail
cd "$(dirname "$0")"
server=${1:-http://127.0.0.1:8787}

python3 -c 'import json; print(json.dumps({"text": open("fire.tesla").read(), "language": "tesla"}))' |
    curl --silent --fail --json @- "$server/v1/queries" > /dev/null

curl --silent --fail --header 'Content-Type: application/x-ndjson' --data-binary @events.jsonl "$server/v1/events?source=curl"
echo

# All matches that the server's log has (after= is empty), as server-sent events, for a second.
curl --silent --no-buffer --max-time 1 --get "$server/v1/matches" --data-urlencode "query=Fire" \
    --data-urlencode "where=area = 'hall'" --data after= || [ $? -eq 28 ]

curl --silent --fail --request DELETE "$server/v1/queries/Fire" > /dev/null
