# build/fuzz/tests/fuzz/fuzz_X is a libFuzzer program (VARIANT=fuzz), build/<variant>/tests/fuzz/replay_X
# the same code over files.
# They link only the folders of core that read text from outside, so that a sanitizer's build makes no others for them.
FUZZ_CORE := $(foreach d,capacity catalog failure lowering money spec states,$(call lib,orchestrator/core/$(d)))
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
$(O)/tests/fuzz/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(FUZZ_CORE) $(LIB_COMMON)
	$(link) -fsanitize=fuzzer,address,undefined -pie -pthread $(L_COMMON)
$(O)/tests/fuzz/replay_%: $(O)/tests/fuzz/fuzz_%.o $(O)/tests/fuzz/replay_main.o $(FUZZ_CORE) $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON)
# That of ID tokens links the folder, and cjose.
$(O)/tests/fuzz/fuzz_id_token $(O)/tests/fuzz/replay_id_token: $(call lib,orchestrator/oidc)
$(O)/tests/fuzz/fuzz_id_token $(O)/tests/fuzz/replay_id_token: L_COMMON += $(call pkg,--libs,cjose)
.PHONY: fuzzers fuzz-replays
fuzzers: $(FUZZERS:%=$(O)/tests/fuzz/fuzz_%)
fuzz-replays: $(FUZZERS:%=$(O)/tests/fuzz/replay_%)
