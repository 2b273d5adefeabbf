/* Attributes, assertions and the macros every file uses. ASSERT is on in every build and catches
 * our own bugs only; bad input is an error value. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MUST_CHECK             __attribute__((warn_unused_result))
#define PRINTF(fmt_i, first_i) __attribute__((format(printf, fmt_i, first_i)))
#define NORETURN               __attribute__((noreturn))
#define UNUSED                 __attribute__((unused))
#define ALWAYS_INLINE          static inline __attribute__((always_inline))
#define CLEANUP(fn)            __attribute__((cleanup(fn)))
#define ARRAY_LEN(a)           (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)              ((a) < (b) ? (a) : (b))
#define MAX(a, b)              ((a) > (b) ? (a) : (b))

/* Returns the pointer and sets the variable to NULL: ownership moves to the receiver. */
#define TAKE(ptr)                                                                                  \
    __extension__({                                                                                \
        __typeof__(ptr) take_ = (ptr);                                                             \
        (ptr) = NULL;                                                                              \
        take_;                                                                                     \
    })

#define ASSERT(cond)                                                                               \
    do {                                                                                           \
        if (__builtin_expect(!(cond), 0)) {                                                        \
            assert_failed(#cond, __FILE__, __LINE__, __func__);                                    \
        }                                                                                          \
    } while (0)

/* What must not be reached: `text` says what it would mean. */
#define BUG(text) assert_failed(text, __FILE__, __LINE__, __func__)

/* Print one line to stderr and abort. */
NORETURN void assert_failed(const char *cond, const char *file, int line, const char *func);

/* malloc and friends. When memory is out they, and code that learns it from a library, print one
 * line and exit with status 71: all state is in the database, and the service manager restarts the
 * program. */
NORETURN void out_of_memory(void);
void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
/* The array of *cap items of `size` bytes with room for one more than n; doubled when full. */
void *array_room(void *items, size_t n, size_t *cap, size_t size) __attribute__((returns_nonnull));
#define ARRAY_ROOM(items, n, cap) ((items) = array_room((items), (n), &(cap), sizeof *(items)))
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
/* printf into a new string; the caller frees it. */
char *xasprintf(const char *fmt, ...) PRINTF(1, 2) __attribute__((malloc, returns_nonnull));
