/* Archives: members lie within the input, in order, under names that lead nowhere else. The input
 * is also read with every header's checksum put right, so that changes get past the first check. */
#include "common/cleanup.h"
#include "common/tar.h"
#include "fuzz.h"
#include <stdio.h>

static void read_all(struct str in)
{
    struct tar_reader r;
    struct tar_member m;
    struct err err = ERR_INIT;
    int64_t end = 0;
    tar_reader_init(&r, in);
    while (tar_next(&r, &m, &err)) {
        ASSERT(m.offset >= end + TAR_BLOCK);
        ASSERT(m.size >= 0);
        ASSERT((size_t)m.offset <= in.n && (size_t)m.size <= in.n - (size_t)m.offset);
        ASSERT(m.name.n > 0 && m.name.n <= 1024 && m.name.p[0] != '/');
        ASSERT(strlen(m.name.p) == m.name.n);
        ASSERT(strcmp(m.name.p, "..") != 0 && !str_starts(m.name, "../"));
        ASSERT(str_find(m.name, STR("/../")) < 0 && !str_ends(m.name, "/.."));
        end = m.offset + m.size;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    read_all(in);
    AUTO_BUF struct buf fixed = BUF_INIT((size_t)1 << 20);
    buf_add_str(&fixed, in);
    for (size_t at = 0; at + TAR_BLOCK <= fixed.n; at += TAR_BLOCK) {
        char *h = fixed.p + at;
        unsigned sum = 0;
        if (memcmp(h + 257, "ustar", 5) != 0) {
            continue;
        }
        memset(h + 148, ' ', 8);
        for (int i = 0; i < TAR_BLOCK; i++) {
            sum += (uint8_t)h[i];
        }
        (void)snprintf(h + 148, 8, "%06o", sum);
    }
    read_all(buf_str(&fixed));
    return 0;
}
