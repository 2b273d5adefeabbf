# What tests/integration/worker_*.py need: a program that speaks SQL to DuckDB.
$(O)/tests/worker_fixture: tests/integration/worker/worker_fixture.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(INC_tests) $< -o $@ -pie $(L_WORKER)
test-bins: $(O)/tests/worker_fixture $(BIN)/drover-worker
# What worker_ssrf.py preloads: it writes down where the worker connects to.
$(O)/tests/connect_log.so: tests/integration/worker_kit/connect_log.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -fPIC -shared $< -o $@ -ldl
test-bins: $(O)/tests/connect_log.so
# The resolver with a clock of the test's own.
$(O)/tests/integration/worker/test_worker_resolve: $(O)/tests/integration/worker/test_worker_resolve.o $(LIB_WORKER) $(LIB_COMMON)
	$(link) $(LD_ALL) -Wl,--wrap=clock_mono_us -lcmocka $(L_COMMON) $(L_WORKER)
