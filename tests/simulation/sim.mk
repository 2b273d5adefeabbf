# The exhaustive check of the submit protocol: the protocol's own release objects inside a small
# world. assert_failed is the checker's, so that a failed assert comes with its story.
SIM_OBJS := $(addprefix $(O)/tests/simulation/,exhaustive.o world.o world_calls.o world_check.o)
$(O)/tests/simulation/exhaustive: $(SIM_OBJS) $(O)/orchestrator/core/protocol.o $(O)/orchestrator/core/lifecycle.o
	$(link) $(LD_ALL)
.PHONY: exhaustive
exhaustive: $(O)/tests/simulation/exhaustive
