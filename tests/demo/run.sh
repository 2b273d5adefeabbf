#!/bin/bash
# `make run`: the sample campaign on this machine, from Parquet files in somebody's bucket to a model behind an endpoint.
# Everything it makes lies under build/run. On a terminal it stays up until Ctrl-C; else it tears down and ends.
set -eu
cd "$(dirname "$0")/../.."
top=$PWD
run=$top/build/run
bin=$top/build/bin
parts=${DEMO_PARTS:-16}
rows=${DEMO_ROWS:-500}
pids=()

# shellcheck disable=SC2317 # called by the trap
stop_all() {
    trap - EXIT
    local i p
    for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
        p=${pids[i]}
        kill -TERM "$p" 2>/dev/null || continue
        for _ in $(seq 100); do
            kill -0 "$p" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$p" 2>/dev/null || continue
    done
    bash tests/demo/down.sh "$run" # jobs outlive drover-local: here nothing shall stay
}
trap stop_all EXIT
trap 'echo "make run: interrupted; ending what it started" >&2; exit 130' INT TERM

fail() { # fail WHAT LOG: what went wrong, the end of its log, and no more
    echo "make run: $1; the end of build/run/${2##*/}:" >&2
    tail -5 "$2" >&2
    exit 1
}

wait_for() { # wait_for SECONDS WHAT COMMAND...
    local n=$(($1 * 20)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        n=$((n - 1))
        if [ $n -le 0 ]; then
            echo "make run: $what did not come up; logs are in build/run/*.log" >&2
            exit 1
        fi
        sleep 0.05
    done
}

bash tests/demo/down.sh "$run" # what an earlier run may have left
rm -rf "$run"
mkdir -p "$run/aws/s3/drover-demo" "$run/aws/s3/laion-web/meta"
make --no-print-directory -s demo

build/release/demo/demo_server --images "$run/web" --ports "$run/ports" --log "$run/web.log" \
    >"$run/web-server.log" 2>&1 &
pids+=($!)
web=$!
wait_for 10 "the demo's web server" test -s "$run/ports"
read -r http_port dns_port <"$run/ports"
echo "making $parts parquet parts, and 280 images for the demo's own web server"
build/release/demo/demo_make "$run/web" "$run/aws/s3/laion-web/meta" "$http_port" 280 "$parts" "$rows"
kill -HUP "$web"

export AWS_ACCESS_KEY_ID=AKIADROVERDEMO AWS_SECRET_ACCESS_KEY=demo-secret-for-this-machine-only
export AWS_REGION=us-east-1
unset AWS_PROFILE AWS_SESSION_TOKEN
prices='{"ml.c5.xlarge": "0.204", "ml.m5.large": "0.115", "hosting:ml.m5.large": "0.115", "ml.g5.xlarge": "1.408", "storage:SCRATCH_2": "0.14"}'
cat >"$run/local.json" <<CONFIG
{"quotas": {"ml.c5.xlarge": 4, "ml.m5.large": 2, "ml.g5.xlarge": 4},
 "warm_quotas": {"ml.g5.xlarge": 4}, "endpoint_quotas": {"ml.m5.large": 1},
 "prices": $prices,
 "fsx_create_seconds": 1, "fsx_delete_seconds": 0.5, "endpoint_start_seconds": 0.5,
 "cold_start_seconds": 0.5, "stop_seconds": 0.5, "signature_window_seconds": 5,
 "rates": {"CreateTrainingJob": 10},
 "images": {"drover/worker:demo": ["$bin/drover-worker"]},
 "credentials": {"$AWS_ACCESS_KEY_ID": "$AWS_SECRET_ACCESS_KEY"}, "log_bodies": true,
 "faults": [
  {"operation": "CreateTrainingJob", "name_contains": "-download-5-a1-", "kind": "internal_error", "times": 1},
  {"operation": "CreateTrainingJob", "name_contains": "-download-7-a1-", "kind": "capacity", "times": 1},
  {"operation": "CreateTrainingJob", "name_contains": "-download-9-a1-", "kind": "drop_after", "times": 1}]}
CONFIG
echo "starting drover-local, the AWS of this machine: 4 slots; three faults are on order"
"$bin/drover-local" --listen 127.0.0.1:0 --root "$run/aws" --config "$run/local.json" --port-file "$run/local.port" \
    >"$run/local.log" 2>&1 &
pids+=($!)
wait_for 10 "drover-local" test -s "$run/local.port"
AWS_ENDPOINT_URL=http://127.0.0.1:$(cat "$run/local.port")
export AWS_ENDPOINT_URL

# One part was done before the campaign came: drover skips it.
echo "making one part beforehand, by hand: drover will skip it"
"$bin/drover-worker" download --parquet s3://laion-web/meta/part-00003.snappy.parquet \
    --output s3://drover-demo/images/00003/ --number_sample_per_shard 250 --timeout 3 --host_patience 2 --processes_count 2 \
    --allow_net "127.0.2.0/24:$http_port" --dns "127.0.2.1:$dns_port" >"$run/before.log" 2>&1 ||
    fail "the part made beforehand failed" "$run/before.log"

echo "starting PostgreSQL and droverd"
export DROVER_TOKEN_FILE=$run/token DROVER_LISTEN=${DROVER_LISTEN:-127.0.0.1:0}
DROVER_ROLE_ARN=arn:aws:iam::123456789012:role/drover-demo DROVER_WORKER_IMAGE=drover/worker:demo \
    DROVER_BUCKET=s3://drover-demo DROVER_JOB_PREFIX=demo \
    DROVER_OBSERVE_INTERVAL_US=500000 DROVER_CREATE_RATE_PER_MINUTE=600 DROVER_SIGNATURE_WINDOW_US=5000000 \
    "$bin/droverd" --private-db "$run/db" --port-file "$run/droverd.port" >"$run/droverd.log" 2>&1 &
pids+=($!)
wait_for 60 "droverd" test -s "$run/droverd.port"
DROVER_URL=http://127.0.0.1:$(cat "$run/droverd.port")
export DROVER_URL
wait_for 20 "the control loop" grep -q leader_elected "$run/droverd.log"
# Prices are those of drover-local's AWS Pricing.
# shellcheck disable=SC2016 # the inner shell expands it
wait_for 20 "the prices" sh -c '"$1" prices ml.c5.xlarge -o name 2>/dev/null | grep -q .' sh "$bin/drover"

sed -e "s|@ALLOW@|127.0.2.0/24:$http_port|" -e "s|@DNS@|127.0.2.1:$dns_port|" -e "s|@PARTS@|$parts|" \
    tests/demo/campaign.yaml >"$run/campaign.yaml"
began=$(date +%s.%N)
id=$("$bin/drover" submit "$run/campaign.yaml" -y -o name)
echo "submitted $id: $DROVER_URL/c/${id#c-}"
status=0
"$bin/drover" watch "$id" || status=$?
endpoint=$("$bin/drover" endpoints -o name | head -1)
answer=
if [ -n "$endpoint" ]; then
    echo
    echo "its endpoint $endpoint is asked, and deleted before its time is over"
    answer=$("$bin/drover" endpoints invoke "$endpoint" --data '{"caption": "a red fox in the snow"}') || status=1
    "$bin/drover" endpoints delete "$endpoint" -y || status=1
    wait_for 60 "the end of $endpoint" sh -c "'$bin/drover' endpoints show $endpoint -o json | grep -q '\"ended_at\": *\"'"
fi
node tests/demo/summary.mjs "$id" "$began" "$run" "$answer" || status=1
echo
echo "what more instances bring (drover scaling $id --metric images_per_second):"
"$bin/drover" scaling "$id" --metric images_per_second || status=1
echo
echo "where the hour went (drover cost $id --by phase):"
"$bin/drover" cost "$id" --by phase || status=1
if [ -t 0 ] && [ -t 1 ]; then
    trap 'echo; exit "$status"' INT TERM
    echo
    echo "Everything stays up until Ctrl-C. The dashboard asks for the token in"
    echo "build/run/token. In another terminal:"
    echo "  export DROVER_URL=$DROVER_URL DROVER_TOKEN_FILE=$run/token"
    echo "  build/bin/drover parts $id"
    while :; do sleep 3600; done
fi
exit "$status"
