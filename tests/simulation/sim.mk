# The exhaustive check of the submit protocol: the protocol's own release objects inside a small
# world. assert_failed is the checker's, so that a failed assert comes with its story.
EXHAUSTIVE_OBJS := $(addprefix $(O)/tests/simulation/exhaustive/,exhaustive.o world.o world_calls.o world_check.o)
$(O)/tests/simulation/exhaustive/exhaustive: $(EXHAUSTIVE_OBJS) $(O)/orchestrator/core/protocol/protocol.o $(O)/orchestrator/core/states/lifecycle.o
	$(link) $(LD_ALL)
# The simulator: whole campaigns over core's own objects, the same files droverd links.
SIM_OBJS := $(patsubst %.c,$(O)/%.o,$(wildcard tests/simulation/wide/sim*.c))
$(O)/tests/simulation/wide/sim: $(SIM_OBJS) $(LIB_CORE) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON)
$(O)/tests/simulation/wide/scenarios: $(O)/tests/simulation/wide/scenarios.o $(filter-out %/sim.o,$(SIM_OBJS)) $(LIB_CORE) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON)
.PHONY: exhaustive simulator sim-mutants
exhaustive: $(O)/tests/simulation/exhaustive/exhaustive
simulator: $(O)/tests/simulation/wide/sim $(O)/tests/simulation/wide/scenarios
sim-mutants: simulator ## planted bugs that the campaign simulator must find
	$(Q)bash tests/simulation/wide/mutants.sh
# The deep simulation: droverd's own archives over a real PostgreSQL, but for the clock, the loop and
# what speaks to AWS, which are tests/simulation/deep's, linked in their place.
DEEP_OBJS := $(patsubst %.c,$(O)/%.o,$(wildcard tests/simulation/deep/deep*.c))
DEEP_WRAP := clock_wall_us clock_boot_us clock_mono_us rng_secret store_open store_close store_fd store_notified \
  store_exec store_exec_while store_run store_plain store_pipeline lease_check_durability \
  aws_client_new aws_client_free aws_client_set_gate aws_client_skew_us aws_client_answers aws_client_region s3_get s3_head s3_list s3_list_level s3_list_page
DEEP_ALSO := $(patsubst %,$(O)/orchestrator/%.o,bridge metrics api/handlers/listings api/handlers/listed_parts)
DEEP_LIBS := $(call lib,orchestrator/controller) $(LIB_STORE) $(LIB_CORE) $(LIB_COMMON)
$(O)/tests/simulation/deep/deep: $(DEEP_OBJS) $(DEEP_ALSO) $(GEN_OBJS) $(DEEP_LIBS)
	$(link) $(LD_ALL) $(DEEP_WRAP:%=-Wl,--wrap=%) $(L_COMMON) $(L_PQ)
# The same with the objects of the folder MUTANT in front: deep/mutants.sh.
deep-mutant: $(DEEP_OBJS) $(DEEP_ALSO) $(GEN_OBJS) $(DEEP_LIBS)
	$(Q)$(CC) -o $(MUTANT)/deep $(wildcard $(MUTANT)/*.o) $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group \
	  $(LD_ALL) $(GOLD) $(DEEP_WRAP:%=-Wl,--wrap=%) $(L_COMMON) $(L_PQ)
.PHONY: deep deep-sim deep-mutant
deep: $(O)/tests/simulation/deep/deep
deep-sim: deep ## the deep simulation: SEEDS=n FIRST=m, TELL=1 for one seed's story, LARGE=1
	$(Q)$(O)/tests/simulation/deep/deep --seeds $(or $(SEEDS),200) --first $(or $(FIRST),1) $(if $(LARGE),--large) $(if $(TELL),--tell --jobs 1)
