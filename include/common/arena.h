/* Bump allocation: one arena per tick or request. Everything in it is freed at once; nothing
 * outlives the arena. */
#pragma once
#include "base.h"

struct arena {
    struct arena_block *head;
    size_t used;
    size_t max;
};
void arena_init(struct arena *a, size_t max);
void arena_done(struct arena *a);
void arena_reset(struct arena *a); /* discards all allocations; keeps the first block */
/* Zeroed, aligned to 16 bytes. ASSERTs that the total stays within the maximum. */
void *arena_alloc(struct arena *a, size_t n);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);
