#!/bin/bash
# Runs a command with one PostgreSQL cluster for all its programs (tests/kit/pg_fixture.h). The first one that needs the
# cluster starts it; it is stopped here.
set -u
dir=$(python3 -c 'import sys; sys.path.insert(0, "tests"); from kit import postgres; print(postgres.new_folder("drover-test-"))') || exit 1
chmod 755 "$dir"
export DROVER_TEST_CLUSTER=$dir
# As postgres.py has it: server processes keep the memory that they have once had.
export MALLOC_TRIM_THRESHOLD_=67108864 MALLOC_TOP_PAD_=1048576 MALLOC_MMAP_THRESHOLD_=33554432
"$@"
rc=$?
postmaster=$(head -n 1 "$dir"/pg/data/postmaster.pid 2>/dev/null)
if [ -n "$postmaster" ]; then
    kill -QUIT "$postmaster"
    tail --pid="$postmaster" -s 0.05 -f /dev/null
fi
rm -rf "$dir"
exit $rc
