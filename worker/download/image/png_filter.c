/* Bytes of a pixel are added side by side in a word: without their highest bits nothing is carried
 * into the neighbour. The first byte is the lowest, as on all processors this is built for. */
#include "png_filter.h"

#define HIGHS UINT64_C(0x8080808080808080)

enum { FILTER_NONE, FILTER_SUB, FILTER_UP, FILTER_MEAN, FILTER_PAETH };

ALWAYS_INLINE uint32_t sums(uint32_t a, uint32_t b)
{
    const uint32_t highs = (uint32_t)HIGHS;
    return ((a & ~highs) + (b & ~highs)) ^ ((a ^ b) & highs);
}

/* Rounded down. */
ALWAYS_INLINE uint32_t means(uint32_t a, uint32_t b)
{
    return (a & b) + (((a ^ b) & 0xfefefefe) >> 1);
}

ALWAYS_INLINE uint32_t pixel(const uint8_t *p, size_t bpp)
{
    uint32_t v = *p;
    if (bpp > 1) { /* three of four bytes are used of a pixel of three */
        memcpy(&v, p, sizeof v);
    }
    return v;
}

ALWAYS_INLINE void left(uint8_t *row, size_t n, size_t bpp)
{
    uint32_t before = 0;
    for (size_t i = 0; i < n; i += bpp) {
        before = sums(before, pixel(row + i, bpp));
        memcpy(row + i, &before, bpp);
    }
}

static void above(uint8_t *row, const uint8_t *up, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t a;
        uint64_t b;
        memcpy(&a, row + i, sizeof a);
        memcpy(&b, up + i, sizeof b);
        a = ((a & ~HIGHS) + (b & ~HIGHS)) ^ ((a ^ b) & HIGHS);
        memcpy(row + i, &a, sizeof a);
    }
    for (; i < n; i++) {
        row[i] = (uint8_t)(row[i] + up[i]);
    }
}

ALWAYS_INLINE void mean(uint8_t *row, const uint8_t *up, size_t n, size_t bpp)
{
    uint32_t before = 0;
    for (size_t i = 0; i < n; i += bpp) {
        before = sums(means(before, pixel(up + i, bpp)), pixel(row + i, bpp));
        memcpy(row + i, &before, bpp);
    }
}

/* Whichever is nearest to a + b - c; of equal ones the first. a: left; b: above; c: above left. */
ALWAYS_INLINE int nearest(int a, int b, int c)
{
    int to_a = abs(b - c);
    int to_b = abs(a - c);
    int to_c = abs(a + b - 2 * c);
    int best = to_b <= to_c ? b : c;
    return to_a <= to_b && to_a <= to_c ? a : best;
}

ALWAYS_INLINE void paeth(uint8_t *row, const uint8_t *up, size_t n, size_t bpp)
{
    int before[4] = {0};
    int corner[4] = {0};
    for (size_t i = 0; i < n; i += bpp) {
        for (size_t k = 0; k < bpp; k++) {
            int b = up[i + k];
            before[k] = (row[i + k] + nearest(before[k], b, corner[k])) & 255;
            corner[k] = b;
            row[i + k] = (uint8_t)before[k];
        }
    }
}

ALWAYS_INLINE bool undo(int filter, uint8_t *row, const uint8_t *up, size_t n, size_t bpp)
{
    switch (filter) {
    case FILTER_NONE:
        return true;
    case FILTER_SUB:
        left(row, n, bpp);
        return true;
    case FILTER_UP:
        above(row, up, n);
        return true;
    case FILTER_MEAN:
        mean(row, up, n, bpp);
        return true;
    case FILTER_PAETH:
        paeth(row, up, n, bpp);
        return true;
    default:
        return false;
    }
}

bool png_unfilter(int filter, uint8_t *row, const uint8_t *up, size_t n, int bpp)
{
    ASSERT((bpp == 1 || bpp == 3 || bpp == 4) && n % (size_t)bpp == 0);
    return bpp == 1   ? undo(filter, row, up, n, 1)
           : bpp == 3 ? undo(filter, row, up, n, 3)
                      : undo(filter, row, up, n, 4);
}
