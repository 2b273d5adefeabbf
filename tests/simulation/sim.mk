# The exhaustive check of the submit protocol: the protocol's own release objects inside a small
# world. assert_failed is the checker's, so that a failed assert comes with its story.
EXHAUSTIVE_OBJS := $(addprefix $(O)/tests/simulation/,exhaustive.o world.o world_calls.o world_check.o)
$(O)/tests/simulation/exhaustive: $(EXHAUSTIVE_OBJS) $(O)/orchestrator/core/protocol.o $(O)/orchestrator/core/lifecycle.o
	$(link) $(LD_ALL)
# The simulator: whole campaigns over core's own objects, the same files droverd links.
SIM_OBJS := $(patsubst %.c,$(O)/%.o,$(wildcard tests/simulation/sim*.c))
$(O)/tests/simulation/sim: $(SIM_OBJS) $(LIB_CORE) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON)
$(O)/tests/simulation/scenarios: $(O)/tests/simulation/scenarios.o $(filter-out %/sim.o,$(SIM_OBJS)) $(LIB_CORE) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON)
.PHONY: exhaustive simulator sim-mutants
exhaustive: $(O)/tests/simulation/exhaustive
simulator: $(O)/tests/simulation/sim $(O)/tests/simulation/scenarios
sim-mutants: simulator ## planted bugs that the campaign simulator must find
	$(Q)bash tests/simulation/sim_mutants.sh
