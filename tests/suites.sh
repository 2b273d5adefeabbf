# The suites, in order; sourced by run.sh. Unit and store first, then the lanes.
# The programs are named after their sources: what is left of a source long gone is not run.
programs_of() { for f in tests/"$1"/test_*.c; do f=${f%.c}; echo "build/release/$f"; done; }
mapfile -t unit < <(programs_of unit)
mapfile -t integration < <(programs_of integration)
suite tidy 60 bash tests/tidy.sh
programs unit 300 "${unit[@]}"
suite sigv4-botocore 120 tests/integration/sigv4_botocore.py
suite tar-interop 120 tests/integration/tar_interop.py
suite fuzz-replay 300 bash tests/fuzz/run.sh replay
suite worker-download 180 tests/integration/worker_download.py
suite worker-resume 180 tests/integration/worker_resume.py
suite worker-net 180 tests/integration/worker_net.py
suite awscli 180 tests/integration/awscli_local.py
suite worker-s3 120 tests/integration/worker_s3.py
suite local-sagemaker 180 tests/integration/local_sagemaker.py
suite local-faults 120 tests/integration/local_faults.py
suite local-signature 60 tests/integration/local_signature.py
suite local-restart 120 tests/integration/local_restart.py
suite local-s3 120 tests/integration/local_s3.py
