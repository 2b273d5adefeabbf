/* Bump allocation: a list of blocks, newest first. */
#include "common/arena.h"
#include <stdalign.h>
#include <stdarg.h>

#define ARENA_BLOCK_BYTES ((size_t)64 * 1024)

struct arena_block {
    struct arena_block *next;
    size_t cap;
    size_t used;
    alignas(16) char data[];
};

void arena_init(struct arena *a, size_t max)
{
    *a = (struct arena){.max = max};
}

static void free_blocks(struct arena_block *b)
{
    while (b != NULL) {
        struct arena_block *next = b->next;
        free(b);
        b = next;
    }
}

void arena_done(struct arena *a)
{
    free_blocks(a->head);
    *a = (struct arena){.max = a->max};
}

void arena_reset(struct arena *a)
{
    struct arena_block *b = a->head;
    while (b != NULL && b->next != NULL) {
        struct arena_block *next = b->next;
        free(b);
        b = next;
    }
    if (b != NULL) {
        b->used = 0;
    }
    a->head = b;
    a->used = 0;
}

void *arena_alloc(struct arena *a, size_t n)
{
    ASSERT(n <= a->max);
    size_t rounded = n == 0 ? 16 : (n + 15) & ~(size_t)15;
    ASSERT(rounded >= n);
    ASSERT(n <= a->max - a->used);
    if (a->head == NULL || rounded > a->head->cap - a->head->used) {
        size_t cap = MAX(rounded, ARENA_BLOCK_BYTES);
        struct arena_block *b = xmalloc(sizeof *b + cap);
        b->next = a->head;
        b->cap = cap;
        b->used = 0;
        a->head = b;
    }
    char *p = a->head->data + a->head->used;
    a->head->used += rounded;
    a->used = MIN(a->used + rounded, a->max);
    memset(p, 0, rounded);
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    n = strnlen(s, n);
    char *p = arena_alloc(a, n + 1);
    memcpy(p, s, n);
    return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    ASSERT(n >= 0);
    char *p = arena_alloc(a, (size_t)n + 1);
    va_start(ap, fmt);
    (void)vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}
