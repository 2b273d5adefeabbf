# Fuzzers of the worker's parsers link the worker; its copy and its sample have no parser of their own.
FUZZ_WORKER := $(filter-out $(call lib,worker/copy) $(call lib,worker/sample),$(LIB_WORKER))
WORKER_FUZZERS := image exif url http_answer http_wire index_walk index_meta records bbox output settings
$(WORKER_FUZZERS:%=$(O)/tests/fuzz/fuzz_%): $(O)/tests/fuzz/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(FUZZ_WORKER) $(LIB_COMMON)
	$(link) -fsanitize=fuzzer,address,undefined -pie -pthread $(L_COMMON) $(L_WORKER)
$(WORKER_FUZZERS:%=$(O)/tests/fuzz/replay_%): $(O)/tests/fuzz/replay_%: $(O)/tests/fuzz/fuzz_%.o $(O)/tests/fuzz/replay_main.o $(FUZZ_WORKER) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON) $(L_WORKER)
