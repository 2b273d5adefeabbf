# `make bench-worker`: the download worker against what the libraries alone give.
$(O)/bench/worker_limit: $(O)/tests/bench/worker/limit.o $(LIB_WORKER) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON) $(L_WORKER) $(call pkg,--libs,libturbojpeg)
$(O)/bench/index_limit: $(O)/tests/bench/worker/index_limit.o $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON)
.PHONY: bench-worker
bench-worker: all $(O)/bench/worker_limit $(O)/bench/index_limit $(O)/tests/kit/worker_fixture ## the worker's figures beside the machine's limit, into build/bench.jsonl
	$(Q)$(PY) -B tests/bench/worker/bench.py
	$(Q)$(PY) -B tests/bench/worker/bench_rows.py --only start,group
	$(Q)$(PY) -B tests/bench/worker/latencies.py & $(PY) -B tests/bench/worker/bench_rows.py --only hosts; rc=$$?; wait $$! && exit $$rc
	$(Q)$(PY) -B tests/bench/worker/index.py
