# What lies beside the daemon's folders.
$(O)/tests/unit/api/test_api_router $(O)/tests/unit/api/test_api_bridge: $(O)/orchestrator/bridge.o $(O)/orchestrator/metrics.o
