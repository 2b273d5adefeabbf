# The tests that link the daemon's archives are one program, which runs the test it is called by the
# name of: linking each alone costs as much as compiling it.
ONE := $(filter-out $(addprefix $(O)/tests/,unit/worker/% unit/local/% integration/worker/%),$(TEST_BIN))
ifneq ($(filter asan tsan,$(VARIANT)),) # what `make test` does not run with them is built alone, when it is asked for
ONE := $(filter $(SANITIZED_$(VARIANT)),$(ONE))
endif
$(foreach t,$(ONE),$(eval $(t).o: CFLAGS_ALL += -Dmain=main_$(notdir $(t)) -Wno-missing-prototypes))
$(ONE:%=%.o): tests/unit/one.mk # what changes their flags
$(O)/gen/one.c: Makefile tests/unit/one.mk $(TEST_SRC)
	@mkdir -p $(@D)
	$(Q){ echo '/* Runs the test it is called by the name of. */'; echo '#include <string.h>'; \
	  echo '#pragma GCC diagnostic ignored "-Wstrict-prototypes"'; \
	  printf 'int main_%s();\n' $(notdir $(ONE)); echo 'int main(int argc, char **argv) {'; \
	  echo 'const char *slash = strrchr(argv[0], 47), *name = slash != NULL ? slash + 1 : argv[0];'; \
	  printf 'if (strcmp(name, "%s") == 0) { return main_%s(argc, argv); }\n' $(foreach t,$(notdir $(ONE)),$(t) $(t)); \
	  echo 'return 127; }'; } >$@
$(O)/gen/one.o: $(O)/gen/one.c
	$(Q)$(CC) $(CFLAGS_ALL) -c $< -o $@
$(O)/tests/one: $(ONE:%=%.o) $(O)/gen/one.o $(O)/orchestrator/bridge.o $(O)/orchestrator/metrics.o $(TEST_HELP) $(GEN_OBJS) $(LIB_DAEMON)
	$(link) $(LD_ALL) -lcmocka $(L_COMMON) $(L_MHD) $(L_PQ)
$(ONE): $(O)/tests/one
	@mkdir -p $(@D); ln -srf $< $@
