#!/bin/bash
# Ends what an earlier `make run` may have left behind in FOLDER: droverd, drover-local, the web server, jobs, PostgreSQL.
set -u
run=$1
cmdline() { { tr '\0' '\n' <"$1/cmdline"; } 2>/dev/null; }
[ -d "$run" ] || exit 0
for p in /proc/[0-9]*; do
    pid=${p#/proc/}
    [ "$pid" != $$ ] || continue
    if cmdline "$p" | grep -qxF -e "$run/db" -e "$run/aws" -e "$run/web" ||
        cmdline "$p" | grep -qF -e "$run/db/" -e "$run/aws/"; then
        kill -TERM "$pid" 2>/dev/null
    fi
done
for _ in $(seq 50); do
    left=0
    for p in /proc/[0-9]*; do
        pid=${p#/proc/}
        [ "$pid" != $$ ] || continue
        if cmdline "$p" | grep -qF -e "$run/db" -e "$run/aws"; then left=1; fi
    done
    [ $left = 1 ] || exit 0
    sleep 0.1
done
exit 0
