/* Bump allocation dropped whole: one a tick, one a request. Nothing in an arena outlives it. */
#pragma once
#include "base.h"

struct arena {
    struct arena_block *head;
    size_t used;
    size_t max;
};
void arena_init(struct arena *a, size_t max);
void arena_done(struct arena *a);
void arena_reset(struct arena *a); /* everything given out is gone; the first block is kept */
void *arena_alloc(struct arena *a,
                  size_t n); /* zeroed, 16-aligned; ASSERTs the maximum (ours to bound) */
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);
