/* What unit tests share. */
#include "unit.h"
#include "common/cleanup.h"
#include <stdio.h>

void unit_assert_view(struct str got, const char *want, const char *file, int line)
{
    char *text = str_dup(got);
    _assert_string_equal(text, want, file, line);
    free(text);
}

void unit_read_file(const char *path, struct buf *out)
{
    AUTO_FILE FILE *f = fopen(path, "rb");
    char chunk[4096];
    if (f == NULL) {
        fail_msg("cannot open %s: tests run from the top of the source tree", path);
        return;
    }
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;) {
        buf_add(out, chunk, n);
    }
    assert_false(out->overflow);
}
