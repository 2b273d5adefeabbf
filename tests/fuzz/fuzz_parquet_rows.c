/* Aim: no footer, however damaged, makes parquet_rows read outside its bytes or answer a negative
 * count. */
#include "core/failure/parquet_rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str s = {(const char *)data, n};
    int64_t v = 0;
    if (parquet_rows(s, &v)) {
        ASSERT(v >= 0);
    }
    if (n >= PARQUET_TAIL && parquet_footer_n((struct str){s.p, PARQUET_TAIL}, (int64_t)n, &v)) {
        ASSERT(v > 0 && v + PARQUET_TAIL <= (int64_t)n);
    }
    return 0;
}
