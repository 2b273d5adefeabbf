# The long suites; sourced by run.sh when its mode is "long", in place of suites.sh. One after the other, since each
# keeps the machine busy by itself: wide storms, every action at every failpoint, a wider model, longer fuzzing.
make --no-print-directory -s demo VARIANT=release
make --no-print-directory -s VARIANT=release exhaustive

suite storm-100 1800 python3 tests/crash/storm.py 100
suite storm-mutant 900 bash tests/crash/storm_mutant.sh 20
suite durability-200 1800 python3 tests/crash/durability.py 200
suite failpoints-long 3600 python3 tests/crash/failpoints.py long
suite worker-kill-100 1800 tests/integration/worker/worker_kill.py 100
suite worker-s3-faults-30 1200 tests/integration/worker/worker_s3_faults.py 30
suite worker-soak 2400 tests/integration/worker/worker_soak.py 900
suite exhaustive-wide 1800 build/release/tests/simulation/exhaustive/exhaustive --states 8000000 --walks 200000
suite mutants 1200 bash tests/simulation/exhaustive/mutants.sh
suite sim-mutants 3600 make -s sim-mutants
suite fuzz 2400 bash tests/fuzz/run.sh 60
# What strangers send to a worker: pictures, archives, answers and addresses; ten minutes each.
suite fuzz-image 900 bash tests/fuzz/run.sh 600 image
suite fuzz-tar 1500 bash tests/fuzz/run.sh 600 tar index_walk
suite fuzz-http 2100 bash tests/fuzz/run.sh 600 http_answer http_wire url

# What people do, over and over: a hundred seconds of luck prove little.
again() {
    local rc=0
    for _ in 1 2 3 4 5; do "$@" || rc=1; done
    return $rc
}
export -f again
suite journeys-5 1200 bash -c 'again python3 tests/integration/controller/journeys.py'
suite takeover-5 600 bash -c 'again python3 tests/crash/takeover.py'
