# The suites; sourced by run.sh. Units and the store first; then two lanes side by side: what mostly waits for
# timers and restarts, and what keeps a core busy. A name here is a file of its own in build/test/NAME.log.
# The programs are named after their sources: what is left of a source long gone is not run.
programs_of() { find tests/"$1" -name "test_*.c" | sort | while read -r f; do echo "build/release/${f%.c}"; done; }
mapfile -t unit < <(programs_of unit)
mapfile -t integration < <(programs_of integration)
mapfile -t store < <(printf '%s\n' "${integration[@]}" | grep /test_store_)
mapfile -t clients < <(printf '%s\n' "${integration[@]}" | grep -v /test_store_)

suite tidy 60 bash tests/tidy.sh
suite documents 60 python3 tests/documents.py
programs unit 300 "${unit[@]}"
programs store 300 "${store[@]}"

waits() {
    suite failpoints 600 python3 tests/crash/failpoints.py test
    suite storm 400 python3 tests/crash/storm.py 20
    suite durability 300 python3 tests/crash/durability.py 25
    suite takeover 120 python3 tests/crash/takeover.py
    suite controller-faults 300 tests/crash/controller_faults.py
    suite local-faults 120 tests/integration/local/local_faults.py
    suite worker-net 180 tests/integration/worker/worker_net.py
    suite worker-resume 180 tests/integration/worker/worker_resume.py
    suite worker-memory 180 tests/integration/worker/worker_memory.py
    suite worker-kill 180 tests/integration/worker/worker_kill.py
    suite worker-parity 240 tests/integration/worker/worker_parity.py
    suite worker-life 180 tests/integration/worker/worker_life.py
    suite worker-late 120 tests/integration/worker/worker_late.py
    suite worker-ssrf 120 tests/integration/worker/worker_ssrf.py
    suite worker-tls 120 tests/integration/worker/worker_tls.py
    suite worker-answers 120 tests/integration/worker/worker_answers.py
    suite looking-ahead 120 tests/integration/controller/looking_ahead.py
    suite journeys 240 tests/integration/controller/journeys.py
    suite api-events 180 tests/integration/api/api_events.py
    suite cli 180 tests/integration/cli/cli_drover.py
    suite cli-golden 60 tests/integration/cli/cli_golden.py
}
works() {
    suite simulation 400 bash tests/simulation/run.sh
    suite simulation-hash 400 bash tests/simulation/hash.sh
    programs clients 300 "${clients[@]}"
    suite worker-download 180 tests/integration/worker/worker_download.py
    suite worker-hostile 120 tests/integration/worker/worker_hostile.py
    suite worker-pixels 300 tests/integration/worker/worker_pixels.py
    suite worker-blur 120 tests/integration/worker/worker_blur.py
    suite worker-modes 120 tests/integration/worker/worker_modes.py
    suite worker-parquet 180 tests/integration/worker/worker_parquet.py
    suite worker-s3 120 tests/integration/worker/worker_s3.py
    suite worker-s3-faults 180 tests/integration/worker/worker_s3_faults.py
    suite worker-index 180 tests/integration/worker/worker_index.py
    suite worker-index-life 180 tests/integration/worker/worker_index_life.py
    suite worker-hosts 240 tests/integration/worker/worker_hosts.py
    suite local-s3 120 tests/integration/local/local_s3.py
    suite local-signature 60 tests/integration/local/local_signature.py
    suite awscli 180 tests/integration/local/awscli_local.py
    suite api-rest 180 tests/integration/api/api_rest.py
    suite api-bulk 300 tests/integration/api/api_bulk.py
    suite sigv4-botocore 120 tests/integration/common/sigv4_botocore.py
    suite tar-interop 120 tests/integration/common/tar_interop.py
    suite controller-scheduler 300 tests/integration/controller/controller_scheduler.py
    suite local-restart 120 tests/integration/local/local_restart.py
    suite local-sagemaker 180 tests/integration/local/local_sagemaker.py
    suite local-warm 180 tests/integration/local/local_warm.py
    suite local-spot 180 tests/integration/local/local_spot.py
}
make --no-print-directory -s demo VARIANT=release # both lanes need it
waits &
works
wait
# These bring lanes of their own.
suite asan 900 bash tests/sanitize.sh asan
suite tsan 600 bash tests/sanitize.sh tsan
suite dashboard 150 tests/e2e/dashboard.py
