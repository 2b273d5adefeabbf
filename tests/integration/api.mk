# What tests/integration/api_*.py need: the API alone over a database.
$(O)/tests/api_server: $(O)/tests/integration/api_kit/api_server.o $(O)/orchestrator/bridge.o $(O)/orchestrator/metrics.o $(GEN_OBJS) \
  $(LIB_API) $(LIB_STORE) $(LIB_CORE) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON) $(L_MHD) $(L_PQ)
test-bins: $(O)/tests/api_server
