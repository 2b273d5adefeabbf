# The suites, in order; sourced by run.sh. Unit and store first, then the lanes.
unit=(build/release/tests/unit/test_*[!.od])
integration=(build/release/tests/integration/test_*[!.od])
suite tidy 60 bash tests/tidy.sh
programs unit 300 "${unit[@]}"
suite worker-download 180 tests/integration/worker_download.py
suite worker-resume 180 tests/integration/worker_resume.py
suite worker-net 180 tests/integration/worker_net.py
suite awscli 180 tests/integration/awscli_local.py
