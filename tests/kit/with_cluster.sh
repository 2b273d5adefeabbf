#!/bin/bash
# Runs a command with one PostgreSQL cluster for all its programs (tests/kit/pg_fixture.h). The first one that needs the
# cluster starts it; it is stopped here.
set -u
dir=$(python3 -c 'import sys; sys.path.insert(0, "tests"); from kit import postgres; print(postgres.new_folder("drover-test-"))') || exit 1
chmod 755 "$dir"
export DROVER_TEST_CLUSTER=$dir
"$@"
rc=$?
postmaster=$(head -n 1 "$dir"/pg/data/postmaster.pid 2>/dev/null)
if [ -n "$postmaster" ]; then
    kill -QUIT "$postmaster"
    tail --pid="$postmaster" -s 0.05 -f /dev/null
fi
rm -rf "$dir"
exit $rc
