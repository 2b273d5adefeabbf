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
