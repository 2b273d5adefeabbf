# What tests/integration/api need: the API alone over a database.
$(O)/tests/kit/api_server: $(O)/tests/kit/programs/api_server.o $(O)/orchestrator/bridge.o $(O)/orchestrator/metrics.o $(GEN_OBJS) \
  $(LIB_API) $(LIB_STORE) $(LIB_CORE) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON) $(L_MHD) $(L_PQ)
test-bins: $(O)/tests/kit/api_server
# What tests/integration/worker need: a program that speaks SQL to DuckDB.
$(O)/tests/kit/worker_fixture: tests/kit/programs/worker_fixture.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(INC_tests) $< -o $@ -pie $(L_WORKER)
test-bins: $(O)/tests/kit/worker_fixture $(BIN)/drover-worker
# What worker_ssrf.py preloads: it writes down where the worker connects to.
$(O)/tests/kit/connect_log.so: tests/kit/programs/connect_log.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -fPIC -shared $< -o $@ -ldl
test-bins: $(O)/tests/kit/connect_log.so
# What the controller's tests preload into a droverd whose clock is wrong.
$(O)/tests/kit/clock_shift.so: tests/kit/programs/clock_shift.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -fPIC -shared $< -o $@
test-bins: $(O)/tests/kit/clock_shift.so
# What call_faults.py preloads: calls that fail on order.
$(O)/tests/kit/call_faults.so: tests/kit/programs/call_faults.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -fPIC -shared $< -o $@
test-bins: $(O)/tests/kit/call_faults.so $(O)/tests/fuzz/replay_yaml
# The resolver with a clock of the test's own.
$(O)/tests/integration/worker/test_worker_resolve: $(O)/tests/integration/worker/test_worker_resolve.o $(LIB_WORKER) $(LIB_COMMON)
	$(link) $(LD_ALL) -Wl,--wrap=clock_mono_us -lcmocka $(L_COMMON) $(L_WORKER)
# What tests/sanitize.sh builds of a sanitizer's variant. The command line has one thread, nothing for TSan to find; of ASan's only the
# long tier asks for it, and builds it (tests/kit/api.py).
.PHONY: sanitized-bins
LONG_ONLY := $(filter-out $(addprefix $(O)/tests/unit/core/,spec/% failure/%),$(filter $(addprefix $(O)/tests/,unit/statistics/% unit/local/% \
  unit/core/% integration/store/%),$(TEST_BIN)))
SANITIZED_asan := $(filter-out $(LONG_ONLY),$(TEST_BIN)) $(O)/tests/kit/connect_log.so $(O)/tests/kit/clock_shift.so fuzz-replays
SANITIZED_tsan := $(O)/tests/unit/common/test_log $(O)/tests/integration/common/test_loop
sanitized-bins: $(BIN)/droverd $(BIN)/drover-worker $(wildcard $(BIN)/drover) $(O)/tests/kit/worker_fixture $(O)/tests/kit/api_server $(SANITIZED_$(VARIANT))
# And for the long tier alone.
.PHONY: sanitized-long
sanitized-long: $(BIN)/drover-local $(LONG_ONLY)
# What tests/cov.sh runs.
.PHONY: cov-bins
cov-bins: $(filter-out $(O)/tests/unit/statistics/%,$(filter $(O)/tests/unit/%,$(TEST_BIN))) exhaustive simulator
