# Small programs that scripts under tests/ drive. They link libcommon alone.
TOOLS := $(patsubst tests/tools/%.c,$(O)/tests/tools/%,$(wildcard tests/tools/*.c))
$(TOOLS): $(O)/tests/tools/%: $(O)/tests/tools/%.o $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON)
test-bins: $(TOOLS)
