# Benchmarks: one program each, tests/bench/bench_X.c, linked like the daemon.
BENCH_BIN := $(patsubst tests/bench/%.c,$(O)/bench/%,$(wildcard tests/bench/bench_*.c))
.PHONY: bench-bins
bench-bins: $(BENCH_BIN)
$(O)/bench/%: $(O)/tests/bench/%.o $(GEN_OBJS) $(LIB_DAEMON) $(LIB_CLI)
	$(link) $(LD_ALL) $(L_COMMON) $(L_MHD) $(L_PQ)
$(O)/bench/bench_forecast: $(O)/tests/unit/statistics/forecast_truth.o $(O)/tests/unit/statistics/forecast_honesty.o
