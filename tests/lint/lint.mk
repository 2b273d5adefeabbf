# What each tool says of each C file, in build/lint/TOOL/FILE.log (clang-tidy: of each folder), made again when the file, a header it includes or the
# tool's settings changed. lint.py counts what the logs say.
LINT := build/lint
LINT_SRC := $(sort $(shell find orchestrator worker tests -name '*.c' -not -path '*/node_modules/*'))
# The analyzers follow paths through functions; tests end theirs inside cmocka, which they cannot see.
LINT_DEEP := $(filter-out tests/%,$(LINT_SRC)) tests/lint/planted/planted.c
lint_flags = -std=gnu17 -D_GNU_SOURCE -include common/banned.h -pthread $(call inc,$(patsubst %/,%,$(dir $(1)))) $(SYSINC)
# What a log depends on: what the compiler wrote of the file's object, if it is built.
lint_deps = if [ -f $(O)/$(1).d ]; then sed '1s,^[^:]*:,$(2):,' $(O)/$(1).d; else gcc $(call lint_flags,$(3)) -MM -MT $(2) $(3); fi >$(2:.log=.d)
# lint_tool NAME,FILES,SETTINGS,COMMAND
define lint_tool
$(LINT)/$(1)/%.log: %.c $(3) build/sees/done | gen
	@mkdir -p $$(@D)
	$(Q)$$(call lint_deps,$$*,$$@,$$<)
	$(Q)$(4) >$$@.tmp 2>&1; mv $$@.tmp $$@
.PHONY: lint-$(1)
lint-$(1): $(2:%.c=$(LINT)/$(1)/%.log)
endef
CLANG_TIDY := clang-tidy --quiet --config-file=.clang-tidy
# clang-tidy takes all files of a folder at once, which are compiled alike: half of what one run a file takes. Their log is
# build/lint/TOOL/FOLDER/folder.log and begins with their names.
# lint_folder TOOL,FOLDER,FILES
define lint_folder
$(LINT)/$(1)/$(2)/folder.log: $(3) .clang-tidy build/sees/done | gen
	@mkdir -p $$(@D)
	$(Q)$(foreach f,$(3),$$(call lint_deps,$(f:%.c=%),$$(@D)/$(notdir $(f:.c=.log)),$(f)); sed -i '1s,^[^:]*:,$$@:,' $$(@D)/$(notdir $(f:.c=.d));) :
	$(Q)printf 'FILE %s\n' $(3) >$$@.tmp; $(CLANG_TIDY) --checks=-clang-analyzer-* $(3) -- $$(call lint_flags,$(firstword $(3))) >>$$@.tmp 2>&1; mv $$@.tmp $$@
lint-$(1): $(LINT)/$(1)/$(2)/folder.log
endef
lint_folders = $(foreach d,$(sort $(dir $(2))),$(eval $(call lint_folder,$(1),$(d:%/=%),$(filter $(d)%,$(foreach f,$(2),$(if $(filter $(d),$(dir $(f))),$(f)))))))
.PHONY: lint-clang-tidy lint-clang-tidy-tests
$(call lint_folders,clang-tidy,$(LINT_DEEP))
$(call lint_folders,clang-tidy-tests,$(filter tests/%,$(LINT_SRC)))
$(eval $(call lint_tool,clang-analyzer,$(LINT_DEEP),.clang-tidy,$(CLANG_TIDY) --checks=-bugprone-*$(comma)-misc-*$(comma)-readability-* $$< -- $$(call lint_flags,$$<)))
$(eval $(call lint_tool,gcc-analyzer,$(LINT_DEEP),,gcc $$(call lint_flags,$$<) -O2 -fanalyzer -c -o /dev/null $$<))
$(eval $(call lint_tool,cppcheck,$(LINT_SRC),tests/lint/cppcheck.txt,cppcheck --quiet --std=c11 --enable=warning$(comma)performance$(comma)portability --inline-suppr --suppressions-list=tests/lint/cppcheck.txt --template=gcc $$(filter -I% -D%,$$(call lint_flags,$$<)) $$<))
ifneq ($(filter lint%,$(MAKECMDGOALS)),)
-include $(call headers,$(LINT))$(LINT)/headers.mk
endif
