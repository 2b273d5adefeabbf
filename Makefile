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
comma := ,
Q := $(if $(V),,@)

WARN := -Wall -Wextra $(WERROR) -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
  -Wformat=2 -Wundef -Wswitch-enum -Wwrite-strings -Wcast-qual -Wpointer-arith -fno-common
OPT_release := -O2 -g1 -ffile-prefix-map=$(CURDIR)=. -Wnull-dereference -D_FORTIFY_SOURCE=3 -fstack-protector-strong
OPT_failpoints := -O1 -g -DFAILPOINTS
OPT_debug := -O0 -g3
OPT_asan := -O0 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
OPT_tsan := -O0 -g1 -fno-omit-frame-pointer -fsanitize=thread
OPT_cov := -O0 -g --coverage
OPT_fuzz := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -Wno-unknown-warning-option -Wno-missing-field-initializers
$(if $(filter fuzz,$(VARIANT)),$(eval CC := clang))
OPT := $(OPT_$(VARIANT))
CFLAGS_ALL := -std=gnu17 -D_GNU_SOURCE -Iinclude -include common/banned.h -fPIE -pthread $(WARN) $(OPT) -MMD $(CFLAGS)
# Tests are some 400 links: gold takes a third of the time. What is shipped is linked by the compiler's own.
GOLD := $(if $(shell command -v ld.gold),-fuse-ld=gold)
LD_ALL := -pie -pthread $(filter -fsanitize% --coverage,$(OPT:%fuzzer-no-link,address,undefined=-fsanitize=address,undefined)) \
  -Wl,-z,relro,-z,now -Wl,--as-needed $(if $(filter release,$(VARIANT)),,$(GOLD)) $(LDFLAGS)

# --- libraries ------------------------------------------------------------------------------------
PKG_COMMON := libcurl libcrypto jansson yaml-0.1 libpcre2-8 zlib
PKG_WORKER := libssl libjpeg spng libdeflate libwebp libavif libtiff-4 libcares libseccomp
# once NAME,VALUE: NAME's value, found out when first needed: a bare Debian has no libraries yet when `make deps` reads this.
once = $(if $(filter undefined,$(origin $(1))),$(eval $(1) := $(2)))$($(1))
pkg = $(call once,pkg_$(subst $() ,_,$(1)_$(2)),$$(shell pkg-config $(1) $(2) 2>/dev/null))
SYSINC = $(patsubst -I%,-isystem %,$(call pkg,--cflags,$(PKG_COMMON) libmicrohttpd libpq))
L_COMMON = $(call pkg,--libs,$(PKG_COMMON)) -lm
L_MHD = $(call pkg,--libs,libmicrohttpd)
L_PQ = $(call pkg,--libs,libpq cjose)
NM := build/deps/node_modules
DUCKDB_INC := $(NM)/duckdb/src/duckdb/src/include
DUCKDB_LIB := $(NM)/@duckdb/node-bindings-linux-$(if $(filter aarch64,$(shell uname -m)),arm64,x64)
L_WORKER = $(call pkg,--libs,$(PKG_WORKER)) -lgif -L$(DUCKDB_LIB) -lduckdb '-Wl,-rpath,$$ORIGIN/../lib/drover' '-Wl,-rpath,$$ORIGIN/../deps/$(DUCKDB_LIB:build/deps/%=%)' \
  '-Wl,-rpath,$(CURDIR)/$(DUCKDB_LIB)'

# --- what is compiled how: one archive a folder, and what a folder may include -------------------
# A folder sees its own headers, include/, and what SEES_<folder> names below its top folder. The
# compiler gets exactly those, as links below build/sees/, so a wrong arrow does not compile.
srcs = $(wildcard $(addsuffix /*.c,$(1)))
objs = $(patsubst %.c,$(O)/%.o,$(call srcs,$(1)))
CORE := states protocol catalog spec lowering metrics sched capacity failure money duration forecast leader
STORE := pg rows leader api
DOWNLOAD := part fetch image decode shard text
LOCAL := http model s3 sagemaker jobs services oracle hosting fsx iam
FOLDERS := orchestrator/common $(CORE:%=orchestrator/core/%) $(STORE:%=orchestrator/store/%) orchestrator/aws \
  orchestrator/controller orchestrator/notices orchestrator/oidc orchestrator/api/server orchestrator/api/handlers orchestrator/cli worker/job worker/io \
  $(DOWNLOAD:%=worker/download/%) worker/index worker/copy worker/sample worker/local $(LOCAL:%=worker/local/%)
core = core/model.h core/spec/spec.h core/spec/stage_kind.def core/states core/failure/cause.def core/sched/wait_reason.def $(1:%=core/%)
SEES_orchestrator/core := core
SEES_orchestrator/core/states := $(call core)
SEES_orchestrator/core/protocol := $(call core)
SEES_orchestrator/core/money := $(call core)
SEES_orchestrator/core/duration := $(call core)
SEES_orchestrator/core/failure := $(call core,failure duration)
SEES_orchestrator/core/catalog :=
SEES_orchestrator/core/spec := $(call core,failure duration money catalog)
SEES_orchestrator/core/lowering := $(call core,spec catalog)
SEES_orchestrator/core/metrics := $(call core,money)
SEES_orchestrator/core/capacity := $(call core,failure duration money)
SEES_orchestrator/core/sched := $(call core,failure duration money capacity)
SEES_orchestrator/core/forecast := $(call core,failure duration money capacity sched)
SEES_orchestrator/core/leader := core
SEES_orchestrator/store/pg := core/model.h
SEES_orchestrator/store/rows := core/model.h core/rows.h core/states core/failure/cause.def core/sched/wait_reason.def core/money/ledger.h core/money/cost_phase.def store/pg
SEES_orchestrator/store/leader := $(SEES_orchestrator/store/rows) core/metrics/metric_place.h core/metrics/gate.h core/spec/spec.h core/spec/stage_kind.def store/rows
SEES_orchestrator/store/api := $(SEES_orchestrator/store/rows) store/rows
SEES_orchestrator/aws := $(addprefix core/capacity/,call_rate.h pool_report.h job_report.h quota_reading.h endpoint_report.h filesystem_report.h invocation_report.h) core/failure/log_line.h core/money/price_reading.h
SEES_orchestrator/controller := core aws store/pg store/rows store/leader bridge.h metrics.h metrics.def status.h
SEES_orchestrator/notices := $(call core) store/pg store/rows store/api api/handlers/guidance.h status.h metrics.h metrics.def
SEES_orchestrator/api/server := core oidc store/pg store/rows store/api bridge.h metrics.h metrics.def status.h
SEES_orchestrator/api/handlers := $(SEES_orchestrator/api/server) api/server
SEES_orchestrator/cli := $(call core,spec lowering)
SEES_orchestrator := core aws store api controller notices oidc bridge.h metrics.h metrics.def status.h
SEES_worker := download index copy sample job io
SEES_worker/job := io
$(foreach d,index copy sample,$(eval SEES_worker/$(d) := io job))
SEES_worker/download/decode := download/image
SEES_worker/download/shard := download/image download/part download/fetch/robots.h io job/progress_report.h job/stats.h
SEES_worker/download/fetch := download/part download/shard download/image io job
SEES_worker/download/part := download io job
$(foreach d,$(LOCAL:%=worker/local/%) worker/local,$(eval SEES_$(d) := local))
top = $(firstword $(subst /, ,$(1)))
farm = build/sees/$(subst /,_,$(1))
lib = $(O)/lib$(subst /,_,$(1)).a
INC_tests := -Iinclude -Iorchestrator -Iworker -I. -I$(GEN) -isystem $(DUCKDB_INC)
inc = $(if $(filter tests,$(call top,$(1))),$(INC_tests),-Iinclude -I$(call farm,$(1)) -I$(GEN) $(if $(filter worker,$(call top,$(1))),-isystem $(DUCKDB_INC)))
seen = $(SEES_$(1)) $(filter-out orchestrator worker,$(1:$(call top,$(1))/%=%))
farm_of = mkdir -p $(call farm,$(1)) && $(foreach f,$(filter-out $(addsuffix /%,$(seen)),$(seen)),mkdir -p $(dir $(call farm,$(1))/$(f)) && ln -srfnT $(call top,$(1))/$(f) $(call farm,$(1))/$(f) &&) :
build/sees/done: Makefile
	$(Q)rm -rf build/sees && mkdir -p build/sees
	$(Q)$(foreach d,$(FOLDERS) orchestrator orchestrator/core worker,$(call farm_of,$(d)) &&) touch $@

LIB_COMMON := $(call lib,orchestrator/common)
LIB_CORE := $(foreach d,$(CORE),$(call lib,orchestrator/core/$(d)))
LIB_STORE := $(foreach d,$(STORE),$(call lib,orchestrator/store/$(d)))
LIB_API := $(call lib,orchestrator/api/handlers) $(call lib,orchestrator/api/server) $(call lib,orchestrator/oidc)
LIB_DAEMON := $(call lib,orchestrator/controller) $(call lib,orchestrator/notices) $(LIB_API) $(LIB_STORE) $(call lib,orchestrator/aws) $(LIB_CORE) $(LIB_COMMON)
LIB_CLI := $(call lib,orchestrator/cli)
LIB_WORKER := $(foreach d,index copy sample $(DOWNLOAD:%=download/%) job io,$(call lib,worker/$(d)))
LIB_LOCAL := $(foreach d,local $(LOCAL:%=local/%),$(call lib,worker/$(d)))
BINS := $(addprefix $(BIN)/,droverd drover drover-worker drover-local)

.PHONY: FORCE gen all deps deps-test run check test test-long reproducible bench cov sim asan tsan fuzz man install uninstall clean help lint format test-bins
.DEFAULT_GOAL := all
.SECONDARY .DELETE_ON_ERROR:
MAKEFLAGS += -r

all: $(BINS) ## build droverd, drover, drover-worker and drover-local into build/bin

$(O)/%.o: %.c build/sees/done | gen
	$(Q)$(call once,mkdir_$(@D),$$(shell mkdir -p $(@D)))$(if $(V),,$(info CC  $<))$(CC) $(CFLAGS_ALL) $(call inc,$(patsubst %/,%,$(dir $<))) $(SYSINC) -c $< -o $@
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
ifneq ($(VARIANT),failpoints)
$(BIN)/droverd: $(call objs,orchestrator) $(GEN_OBJS) $(LIB_DAEMON)
	$(link) $(LD_ALL) $(L_COMMON) $(L_MHD) $(L_PQ)
else # only what has failpoints is compiled again; the rest is the release's
RELEASE_OBJS := $(patsubst $(O)/%,build/release/%,$(call objs,orchestrator) $(GEN_OBJS) $(LIB_DAEMON))
$(BIN)/droverd: $(call objs,orchestrator/controller) $(O)/orchestrator/common/failpoint.o FORCE
	$(Q)$(MAKE) --no-print-directory VARIANT=release build/bin/droverd
	@mkdir -p $(@D); $(CC) -o $@ $(filter %.o,$^) $(filter %.o,$(RELEASE_OBJS)) -Wl,--start-group $(filter %.a,$(RELEASE_OBJS)) -Wl,--end-group $(LD_ALL) $(L_COMMON) $(L_MHD) $(L_PQ)
endif
$(BIN)/drover: $(LIB_CLI) $(LIB_CORE) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON)
$(BIN)/drover-worker: $(call objs,worker) $(LIB_WORKER) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON) $(L_WORKER)
$(BIN)/drover-local: $(LIB_LOCAL) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON) $(L_MHD)

# --- generated: query names, embedded migrations, embedded dashboard ------------------------------
gen: $(GEN)/queries.h $(GEN)/migrations.S $(GEN)/assets.S
$(GEN)/queries.h: sql/queries.awk $(wildcard sql/queries/*.sql)
	@mkdir -p $(GEN)
	$(Q)awk -f sql/queries.awk $(sort $(wildcard sql/queries/*.sql)) > $@.tmp && mv $@.tmp $@
$(GEN)/migrations.S: sql/migrations.awk sql/migrations $(wildcard sql/migrations/*.sql) # the folder: a file was renamed
	@mkdir -p $(GEN)
	$(Q)awk -f sql/migrations.awk $(sort $(wildcard sql/migrations/*.sql)) > $@.tmp && mv $@.tmp $@
WEB_SRC := $(wildcard orchestrator/web/*.js orchestrator/web/*.css orchestrator/web/*.html orchestrator/web/*.svg orchestrator/web/*.mjs orchestrator/web/package*.json)
$(O)/orchestrator/cli/templates.o: $(wildcard deploy/examples/*.yaml)
$(GEN)/assets.S: orchestrator/web/build.sh orchestrator/core/model.h $(WEB_SRC)
	$(Q)sh orchestrator/web/build.sh $(GEN)

# --- tests ----------------------------------------------------------------------------------------
# Each test_X.c below tests/unit and tests/integration is a program; those in folders worker/ link the
# worker, in local/ drover-local, all others the daemon's archives (tests/unit/one.mk).
TEST_SRC := $(wildcard $(addsuffix /test_*.c,tests/unit/* tests/unit/core/* tests/integration/*))
TEST_BIN := $(patsubst tests/%.c,$(O)/tests/%,$(TEST_SRC))
ifeq ($(VARIANT),release) # built often, run for moments; what they test is the release's
$(patsubst %.c,$(O)/%.o,$(TEST_SRC)): CFLAGS_ALL += -O0 -g1 -U_FORTIFY_SOURCE
endif
# What computes: at -O0 its suites lose what the build gains.
$(if $(filter asan tsan,$(VARIANT)),$(O)/worker/%.o) $(if $(filter asan,$(VARIANT)),$(O)/orchestrator/common/%.o): CFLAGS_ALL += -O1
TEST_HELP := $(patsubst %.c,$(O)/%.o,$(filter-out $(TEST_SRC),$(wildcard $(addsuffix /*.c,tests/unit tests/unit/statistics tests/kit))))
test-bins: $(TEST_BIN)
$(O)/tests/%: LD_ALL += $(GOLD)
$(O)/tests/unit/worker/%: $(O)/tests/unit/worker/%.o $(LIB_WORKER) $(LIB_COMMON)
	$(link) $(LD_ALL) -lcmocka $(L_COMMON) $(L_WORKER)
$(O)/tests/unit/local/%: $(O)/tests/unit/local/%.o $(LIB_LOCAL) $(LIB_COMMON)
	$(link) $(LD_ALL) -lcmocka $(L_COMMON) $(L_MHD)
$(O)/tests/%: $(O)/tests/%.o $(TEST_HELP) $(GEN_OBJS) $(LIB_DAEMON)
	$(link) $(LD_ALL) -lcmocka $(L_COMMON) $(L_MHD) $(L_PQ)
-include $(wildcard tests/*/*.mk)

check: ## build and run the quick suites: two minutes on two cores
	$(Q)bash tests/run.sh check
test: ## install what tests need, build, run what CI runs, the quick ones first; T=GLOB: those of that name
	$(if $(T),,$(Q)$(MAKE) --no-print-directory deps deps-test)
	$(Q)bash tests/run.sh '$(or $(T),test)'
cov: ; $(Q)bash tests/cov.sh ## coverage of core by its unit tests and simulations, with its floor; build/cov/report.html
test-long: ## what make test leaves out: wide storms, every failpoint, soak, long fuzz
	$(Q)$(MAKE) --no-print-directory deps deps-test
	$(Q)bash tests/run.sh long
reproducible: ; $(Q)bash tests/reproducible.sh ## two builds in two folders give the same programs
bench: all ; $(Q)bash tests/bench/run.sh ## write measured figures to build/bench.jsonl
sim: ## run the protocol's exhaustive model and the simulation (SEEDS=n FIRST=n)
	$(Q)bash tests/run.sh 'sim-*'
asan tsan: ## build with that sanitizer and run the suites meant for it
	$(Q)bash tests/run.sh '$@-*'
fuzz: ; $(Q)bash tests/fuzz/run.sh ## build the fuzzers with clang's libFuzzer (needs make deps-test)
run: ## the sample campaign on this machine, from nothing to shards in a bucket
	$(Q)$(MAKE) --no-print-directory deps
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)bash tests/demo/run.sh
deps: ## install what building and running need (Debian, root or sudo)
	$(Q)sh deploy/deps.sh run
deps-test: ## install what the tests need besides
	$(Q)sh deploy/deps.sh test
man: $(BINS) ## write the man pages to build/man, from the tables the programs carry
	$(Q)sh deploy/man/man.sh $(BIN) build/man
DEST = $(DESTDIR)$(PREFIX)
COMPLETION := bash-completion/completions/drover zsh/vendor-completions/_drover fish/vendor_completions.d/drover.fish
INSTALLED := bin/droverd bin/drover bin/drover-worker bin/drover-local lib/drover/libduckdb.so share/man/man1/drover.1 \
  share/man/man1/drover-worker.1 share/man/man1/drover-local.1 share/man/man8/droverd.8 lib/systemd/system/droverd.service \
  $(COMPLETION:%=share/%) $(addprefix share/doc/drover/,droverd.json laion-download.yaml NOTICE)
# The worker as it is installed: it looks for its library beside itself, not in this tree.
$(O)/install/drover-worker: L_WORKER := $(filter-out '-Wl$(comma)-rpath%,$(L_WORKER)) '-Wl,-rpath,$$ORIGIN/../lib/drover'
$(O)/install/drover-worker: $(call objs,worker) $(LIB_WORKER) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON) $(L_WORKER)
install: all man $(O)/install/drover-worker ## install programs, man pages, service, completion, examples below DESTDIR/PREFIX
	install -d $(addprefix $(DEST)/,$(sort $(dir $(INSTALLED))))
	install -s -m 755 $(filter-out %/drover-worker,$(BINS)) $(O)/install/drover-worker $(DEST)/bin
	install -m 644 $(DUCKDB_LIB)/libduckdb.so $(DEST)/lib/drover
	install -m 644 build/man/*.1 $(DEST)/share/man/man1
	install -m 644 build/man/*.8 $(DEST)/share/man/man8
	sed 's,@PREFIX@,$(PREFIX),' deploy/systemd/droverd.service >$(DEST)/lib/systemd/system/droverd.service
	$(foreach f,$(COMPLETION),$(BIN)/drover completion $(firstword $(subst -, ,$(subst /, ,$(f)))) >$(DEST)/share/$(f) &&) :
	$(BIN)/droverd --example-config >$(DEST)/share/doc/drover/droverd.json
	install -m 644 deploy/examples/laion-download.yaml NOTICE $(DEST)/share/doc/drover
uninstall: ## remove what install wrote
	rm -f $(addprefix $(DEST)/,$(INSTALLED))
	-rmdir $(DEST)/lib/drover $(DEST)/share/doc/drover 2>/dev/null
lint: ## clang-tidy, gcc -fanalyzer, cppcheck, ESLint, shellcheck, clang-format (needs make deps-test; clang's analyzer: make test T=lint-analyzer)
	$(Q)python3 tests/lint/lint.py
format: ## clang-format every C file
	clang-format -i $$(git ls-files '*.c' '*.h')
clean: ## remove build/
	rm -rf build
help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z -]*:.*## /{printf "  %-12s %s\n", $$1, $$2}' Makefile

# The headers of each object as the compilers wrote them, in one file: 900 take make ten times as long. One that is gone is no error.
%.h %.def: ;
headers = $(shell test ! -d $(1) || { find $(1) -name '*.d' -exec cat {} + >$(1)/headers.$$$$ && mv $(1)/headers.$$$$ $(1)/headers.mk; })
-include $(call headers,$(O))$(O)/headers.mk
