/* How much memory the worker takes. */
#pragma once
#include "common/base.h"

/* Bytes of this process and all below it that are in memory, those shared counted once (the sum of
 * their proportional set sizes); of a process that may not be looked into, its resident set. */
int64_t memory_of_all(void);
