#!/bin/bash
# Ends what an earlier `make run` may have left behind in FOLDER: droverd, drover-local, the web server, jobs, PostgreSQL.
set -u
run=$1
[ -d "$run" ] || exit 0
# with WORD...: the processes that have one of the words in an argument; with -x WORD...: as an argument. One grep looks at all
# processes, since the tests call this often. The words come by its standard input: in its arguments it would find itself.
with() {
    local pid whole=()
    if [ "$1" = -x ]; then whole=(-x) && shift; fi
    printf '%s\n' "$@" | grep -lszF "${whole[@]}" -f - /proc/[0-9]*/cmdline | while IFS=/ read -r _ _ pid _; do
        [ "$pid" = $$ ] || echo "$pid"
    done
}
for pid in $(with -x "$run/db" "$run/aws" "$run/web") $(with "$run/db/" "$run/aws/"); do
    kill -TERM "$pid" 2>/dev/null
done
for _ in $(seq 50); do
    [ -n "$(with "$run/db" "$run/aws")" ] || exit 0
    sleep 0.1
done
exit 0
