/* A binary heap in an array: at[0] is the first of [n].
 *
 * HEAP_DEFINE(name, type, ctx_type, before, put) makes two functions:
 *   name_up(ctx, at, i)      at[i] is new or comes earlier than it did
 *   name_down(ctx, at, n, i) at[i] is new or comes later than it did
 * before(ctx, const type *a, const type *b) tells whether a comes before b. put(ctx, at, i, v)
 * writes at[i] = v; HEAP_PUT does only that. A macro, because the innermost loops of scheduler and
 * forecast are heaps of small values whose comparison has to be inlined. */
#pragma once
#include "common/base.h"

#define HEAP_PUT(ctx, at, i, v) ((at)[i] = (v))

#define HEAP_DEFINE(name, type, ctx_type, before, put)                                             \
    UNUSED static inline void name##_up(ctx_type ctx, type *at, size_t i)                          \
    {                                                                                              \
        type v = at[i];                                                                            \
        (void)ctx;                                                                                 \
        for (; i > 0 && before(ctx, &v, &at[(i - 1) / 2]); i = (i - 1) / 2) {                      \
            put(ctx, at, i, at[(i - 1) / 2]);                                                      \
        }                                                                                          \
        put(ctx, at, i, v);                                                                        \
    }                                                                                              \
    UNUSED static inline void name##_down(ctx_type ctx, type *at, size_t n, size_t i)              \
    {                                                                                              \
        type v = at[i];                                                                            \
        (void)ctx;                                                                                 \
        for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {                             \
            child += child + 1 < n && before(ctx, &at[child + 1], &at[child]);                     \
            if (!before(ctx, &at[child], &v)) {                                                    \
                break;                                                                             \
            }                                                                                      \
            put(ctx, at, i, at[child]);                                                            \
            i = child;                                                                             \
        }                                                                                          \
        put(ctx, at, i, v);                                                                        \
    }                                                                                              \
    _Static_assert(sizeof(type) > 0, "takes the semicolon")
