/* What a decoding process may still do. Nothing here can be undone. */
#pragma once
#include "common/base.h"

/* Ignore SIGTERM and SIGINT, no core file, memory limit, no new privileges, and a filter that
 * leaves only memory, clocks, and reading and writing what is open. Limits on memory and the
 * filter are left out in builds with a sanitizer, which needs both. */
bool sandbox_enter(uint64_t memory_max) MUST_CHECK;
/* The process is killed after that much more CPU time. */
void sandbox_cpu_seconds(unsigned seconds);
