/* Restricts a decoding process. Nothing here can be undone. */
#pragma once
#include "common/base.h"

/* Ignore SIGTERM and SIGINT, no core file, memory limit, no new privileges, and a system call
 * filter that allows only memory, clocks, and reading and writing open files. The memory limit and
 * the filter are omitted in sanitizer builds. */
bool sandbox_enter(uint64_t memory_max) MUST_CHECK;
/* The process is killed after this much more CPU time. */
void sandbox_cpu_seconds(unsigned seconds);
