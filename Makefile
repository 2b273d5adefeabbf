# drover: one non-recursive Makefile. Everything it writes is below build/.
# Variants (VARIANT=release|debug|asan|tsan|failpoints|cov|fuzz) keep their objects apart; only the
# release variant also fills build/bin, the place the README, `make run` and the tests know.

VARIANT ?= release
CC ?= gcc
WERROR ?= -Werror
PREFIX ?= /usr/local
# Debian's python3: the one Debian's cv2, numpy and PIL are packaged for, whatever is first on PATH.
PY ?= $(firstword $(wildcard /usr/bin/python3) python3)
O := build/$(VARIANT)
BIN := $(if $(filter release,$(VARIANT)),build/bin,$(O)/bin)
GEN := build/gen
Q := $(if $(V),,@)

WARN := -Wall -Wextra $(WERROR) -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
  -Wformat=2 -Wundef -Wswitch-enum -Wwrite-strings -Wcast-qual -Wpointer-arith -fno-common
OPT_release := -O2 -g -Wnull-dereference -D_FORTIFY_SOURCE=3 -fstack-protector-strong
OPT_failpoints := $(OPT_release) -DFAILPOINTS
OPT_debug := -O0 -g3
OPT_asan := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
OPT_tsan := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
OPT_cov := -O0 -g --coverage
OPT_fuzz := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -Wno-unknown-warning-option -Wno-missing-field-initializers
ifeq ($(VARIANT),fuzz)
  CC := clang
endif
OPT := $(OPT_$(VARIANT))
CFLAGS_ALL := -std=gnu17 -D_GNU_SOURCE -fPIE -pthread $(WARN) $(OPT) -MMD -MP $(CFLAGS)
LD_ALL := -pie -pthread $(filter -fsanitize% --coverage,$(OPT:%fuzzer-no-link,address,undefined=-fsanitize=address,undefined)) \
  -Wl,-z,relro,-z,now -Wl,--as-needed $(LDFLAGS)

# --- libraries ------------------------------------------------------------------------------------
PKG_COMMON := libcurl libcrypto jansson yaml-0.1 libpcre2-8 zlib
PKG_WORKER := libssl libturbojpeg libjpeg spng libwebp libwebpdemux libexif libcares libseccomp
pkg = $(shell pkg-config $(1) $(2) 2>/dev/null)
SYSINC = $(patsubst -I%,-isystem %,$(call pkg,--cflags,$(PKG_COMMON) libmicrohttpd libpq))
L_COMMON = $(call pkg,--libs,$(PKG_COMMON)) -lm
L_MHD = $(call pkg,--libs,libmicrohttpd)
L_PQ = $(call pkg,--libs,libpq)
NM := build/deps/node_modules
DUCKDB_INC := $(NM)/duckdb/src/duckdb/src/include
DUCKDB_LIB := $(NM)/@duckdb/node-bindings-linux-$(if $(filter aarch64,$(shell uname -m)),arm64,x64)
L_WORKER = $(call pkg,--libs,$(PKG_WORKER)) -L$(DUCKDB_LIB) -lduckdb '-Wl,-rpath,$$ORIGIN/../lib/drover' '-Wl,-rpath,$$ORIGIN/../deps/$(DUCKDB_LIB:build/deps/%=%)' \
  '-Wl,-rpath,$(CURDIR)/$(DUCKDB_LIB)'

# --- what is compiled how: one archive a folder, and the include paths are the arrows ------------
srcs = $(wildcard $(addsuffix /*.c,$(1)))
objs = $(patsubst %.c,$(O)/%.o,$(call srcs,$(1)))
FOLDERS := orchestrator/common orchestrator/core orchestrator/store orchestrator/aws orchestrator/controller \
  orchestrator/api orchestrator/cli worker/download worker/index worker/local worker
lib = $(O)/lib$(subst /,_,$(1)).a
INC_orchestrator/common := -Iinclude
INC_orchestrator/core := -Iinclude
INC_orchestrator/cli := -Iinclude
INC_orchestrator := -Iinclude -Iorchestrator -I$(GEN)
INC_worker := -Iinclude -Iworker -isystem $(DUCKDB_INC)
INC_tests := -Iinclude -Iorchestrator -Iworker -I. -I$(GEN) -isystem $(DUCKDB_INC)
inc = $(or $(INC_$(1)),$(INC_$(firstword $(subst /, ,$(1)))))

LIB_COMMON := $(call lib,orchestrator/common)
LIB_CORE := $(call lib,orchestrator/core)
LIB_DAEMON := $(foreach d,controller api store aws core common,$(call lib,orchestrator/$(d)))
LIB_CLI := $(call lib,orchestrator/cli)
LIB_WORKER := $(call lib,worker/index) $(call lib,worker/download) $(call lib,worker)
LIB_LOCAL := $(call lib,worker/local)
BINS := $(addprefix $(BIN)/,droverd drover drover-worker drover-local)

.PHONY: all deps deps-test run test test-long bench sim asan tsan fuzz install clean help format test-bins
.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:

all: $(BINS) ## build droverd, drover, drover-worker and drover-local into build/bin

$(O)/%.o: %.c Makefile | gen
	@mkdir -p $(@D)
	$(if $(V),,@echo "CC  $<")
	$(Q)$(CC) $(CFLAGS_ALL) $(call inc,$(patsubst %/,%,$(dir $<))) $(SYSINC) -c $< -o $@
$(O)/gen/%.o: $(GEN)/%.S
	@mkdir -p $(@D)
	$(Q)$(CC) -c $< -o $@

define archive
$(call lib,$(1)): $(call objs,$(1))
	@mkdir -p $$(@D); rm -f $$@
	$(Q)ar rcs $$@ $$^
endef
$(foreach d,$(FOLDERS),$(eval $(call archive,$(d))))

link = @mkdir -p $(@D); echo "LD  $@"; $(CC) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group
GEN_OBJS := $(O)/gen/migrations.o $(O)/gen/assets.o
$(BIN)/droverd: $(call objs,orchestrator) $(GEN_OBJS) $(LIB_DAEMON)
	$(link) $(LD_ALL) $(L_COMMON) $(L_MHD) $(L_PQ)
$(BIN)/drover: $(LIB_CLI) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON)
$(BIN)/drover-worker: $(call objs,worker) $(LIB_WORKER) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON) $(L_WORKER)
$(BIN)/drover-local: $(LIB_LOCAL) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON) $(L_MHD)

# --- generated: query names, embedded migrations, embedded dashboard ------------------------------
.PHONY: gen
gen: $(GEN)/queries.h $(GEN)/migrations.S $(GEN)/assets.S
$(GEN)/queries.h: sql/queries.awk $(wildcard sql/queries/*.sql)
	@mkdir -p $(GEN)
	$(Q)awk -f sql/queries.awk $(sort $(wildcard sql/queries/*.sql)) > $@.tmp && mv $@.tmp $@
$(GEN)/migrations.S: sql/migrations.awk $(wildcard sql/migrations/*.sql)
	@mkdir -p $(GEN)
	$(Q)awk -f sql/migrations.awk $(sort $(wildcard sql/migrations/*.sql)) > $@.tmp && mv $@.tmp $@
WEB_SRC := $(wildcard orchestrator/web/*.js orchestrator/web/*.css orchestrator/web/*.html orchestrator/web/*.svg orchestrator/web/*.mjs orchestrator/web/package*.json)
$(GEN)/assets.S: orchestrator/web/build.sh $(WEB_SRC)
	$(Q)sh orchestrator/web/build.sh $(GEN)

# --- tests ----------------------------------------------------------------------------------------
# tests/unit/test_X.c and tests/integration/test_X.c are one program each; test_worker_*.c link the
# worker, test_local_*.c link drover-local, all others the daemon's archives.
TEST_SRC := $(wildcard tests/unit/test_*.c tests/integration/test_*.c)
TEST_BIN := $(patsubst tests/%.c,$(O)/tests/%,$(TEST_SRC))
TEST_HELP := $(patsubst %.c,$(O)/%.o,$(filter-out $(TEST_SRC) tests/integration/worker_fixture.c,$(wildcard tests/unit/*.c tests/integration/*.c)))
test-bins: $(TEST_BIN)
$(O)/tests/unit/test_worker_%: $(O)/tests/unit/test_worker_%.o $(LIB_WORKER) $(LIB_COMMON)
	$(link) $(LD_ALL) -lcmocka $(L_COMMON) $(L_WORKER)
$(O)/tests/unit/test_local_%: $(O)/tests/unit/test_local_%.o $(LIB_LOCAL) $(LIB_COMMON)
	$(link) $(LD_ALL) -lcmocka $(L_COMMON) $(L_MHD)
$(O)/tests/%: $(O)/tests/%.o $(TEST_HELP) $(GEN_OBJS) $(LIB_DAEMON) $(LIB_CLI)
	$(link) $(LD_ALL) -lcmocka $(L_COMMON) $(L_MHD) $(L_PQ)
-include $(wildcard tests/*/*.mk)

test: ## install what tests need, build, run every test; ends with "N passed, N failed"
	$(Q)$(MAKE) --no-print-directory deps deps-test
	$(Q)bash tests/run.sh
test-long: ## the long campaigns: wide storms, every failpoint, soak, long fuzz
	$(Q)$(MAKE) --no-print-directory deps deps-test
	$(Q)bash tests/run.sh long
bench: all ## write measured figures to build/bench.jsonl
	$(Q)bash tests/bench/run.sh
sim: ## run the protocol's exhaustive model and the simulation
	$(Q)bash tests/simulation/run.sh
asan tsan: ## build with that sanitizer and run the suites meant for it
	$(Q)bash tests/sanitize.sh $@
fuzz: ## build the fuzzers with clang's libFuzzer (needs make deps-test)
	$(Q)bash tests/fuzz/run.sh
run: ## the sample campaign on this machine, from nothing to shards in a bucket
	$(Q)$(MAKE) --no-print-directory deps
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)bash tests/demo/run.sh
deps: ## install what building and running need (Debian, root or sudo)
	$(Q)sh deploy/deps.sh run
deps-test: ## install what the tests need besides
	$(Q)sh deploy/deps.sh test
install: all ## install the four programs below DESTDIR/PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/drover
	install -m 755 $(BINS) $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(DUCKDB_LIB)/libduckdb.so $(DESTDIR)$(PREFIX)/lib/drover
format: ## clang-format every C file
	clang-format -i $$(git ls-files '*.c' '*.h')
clean: ## remove build/
	rm -rf build
help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z -]*:.*## /{printf "  %-12s %s\n", $$1, $$2}' Makefile

-include $(shell find $(O) -name '*.d' 2>/dev/null)
