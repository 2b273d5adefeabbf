/* See operation_turns.h. */
#include "operation_turns.h"

/* The oldest one of the same campaign. */
static size_t oldest_of(const struct operation_row *rows, size_t at)
{
    size_t i = 0;
    while (rows[i].campaign_id != rows[at].campaign_id) {
        i++;
    }
    return i;
}

void operation_turns(const struct operation_row *rows, size_t n, int64_t after, size_t *ret)
{
    size_t put = 0;
    for (int wrapped = 0; wrapped < 2; wrapped++) {
        for (size_t i = 0; i < n; i++) {
            if ((rows[i].id <= after) != (wrapped == 1) || oldest_of(rows, i) != i) {
                continue;
            }
            for (size_t k = i; k < n; k++) {
                if (rows[k].campaign_id == rows[i].campaign_id) {
                    ret[put++] = k;
                }
            }
        }
    }
    ASSERT(put == n);
}

bool operation_turns_over(const struct operation_row *rows, size_t n, const size_t *order,
                          size_t at, int64_t took_us, int64_t *ret_after)
{
    bool over = at + 1 < n && took_us >= OPERATION_TURNS_US;
    *ret_after = over ? rows[oldest_of(rows, order[at])].id : 0;
    return over;
}
