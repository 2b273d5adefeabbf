/* A key between two others, to divide a listing into ranges. Pure. */
#pragma once
#include "base.h"

/* *ret: a key, not necessarily of an object, with low < *ret < high in the order of bytes. Both
 * begin with the same fixed_n bytes, which are kept; high "": there is no end. UTF-8 when low is.
 * Where high says nothing the middle is that of the digits, or of the letters of one case, that low
 * has there. False when there is none of less than size bytes. */
bool key_between(const char *low, const char *high, size_t fixed_n, char *ret,
                 size_t size) MUST_CHECK;
