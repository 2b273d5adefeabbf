# What tests/integration/worker_*.py need: a program that speaks SQL to DuckDB.
$(O)/tests/worker_fixture: tests/integration/worker_fixture.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(INC_worker) $< -o $@ -pie $(L_WORKER)
test-bins: $(O)/tests/worker_fixture $(BIN)/drover-worker
