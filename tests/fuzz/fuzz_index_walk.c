/* The index walk: members lie within the archive, in order, whatever windows it is seen through; an
 * archive that common/tar.h takes as a whole has the same members here; every line that comes out
 * of a scan is one JSON object. The input is also read with every header's checksum put right, so
 * that changes get past the first check. */
#include "common/cleanup.h"
#include "common/json.h"
#include "common/tar.h"
#include "fuzz.h"
#include "index/scan.h"
#include <stdio.h>

#define MEMBERS_MAX 4096

struct seen {
    int64_t offset, size;
    uint64_t name;
};

static size_t walk(struct str in, size_t step, struct seen *ret, bool *ret_whole)
{
    struct source src;
    struct tarwalk w;
    struct tarwalk_member m;
    struct err err = ERR_INIT;
    int64_t end = 0;
    size_t n = 0;
    source_init(&src, SOURCE_AUTO);
    source_open_memory(&src, in, step);
    tarwalk_init(&w, &src);
    while (tarwalk_next(&w, &m, &err)) {
        ASSERT(m.offset >= end + TAR_BLOCK);
        ASSERT(m.size >= 0);
        ASSERT((size_t)m.offset <= in.n && (size_t)m.size <= in.n - (size_t)m.offset);
        ASSERT(m.name.n > 0 && m.name.n <= TARWALK_NAME_MAX);
        ASSERT(memchr(m.name.p, '\0', m.name.n) == NULL);
        end = m.offset + m.size;
        if (n < MEMBERS_MAX && !str_ends(m.name, "/")) {
            ret[n++] = (struct seen){m.offset, m.size, line_key_hash(m.name)};
        }
    }
    ASSERT(w.at >= 0 && (size_t)w.at <= in.n);
    ASSERT(err.code == ERR_NONE || err.code == ERR_MALFORMED || err.code == ERR_LIMIT);
    *ret_whole = err.code == ERR_NONE;
    source_done(&src);
    return n;
}

/* Names with a '/' at the end are members of one kind there and of another here. */
static void compare(struct str in, const struct seen *ours, size_t n)
{
    struct tar_reader r;
    struct tar_member m;
    struct err err = ERR_INIT;
    size_t i = 0;
    tar_reader_init(&r, in);
    while (tar_next(&r, &m, &err)) {
        if (str_ends(m.name, "/") || i == MEMBERS_MAX) {
            continue;
        }
        ASSERT(i < n);
        ASSERT(ours[i].offset == m.offset);
        ASSERT(ours[i].size == m.size);
        ASSERT(ours[i].name == line_key_hash(m.name));
        i++;
    }
}

static bool nothing_to_flush(void *ctx UNUSED, struct err *err UNUSED)
{
    return true;
}

static void check_lines(const struct buf *b)
{
    struct str rest = buf_str(b);
    ASSERT(!b->overflow);
    while (rest.n > 0) {
        struct str line = str_split(&rest, '\n');
        json_error_t e;
        json_t *v = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
        ASSERT(json_is_object(v));
        json_decref(v);
    }
}

static void scan(struct str in)
{
    static const struct scan_config config = {
        .fields = 255, .need_txt = true, .need_json = true, .sample = true, .sample_below = ~0ULL};
    struct source src;
    struct scan s;
    struct scan_out out;
    struct err err = ERR_INIT;
    source_init(&src, SOURCE_AUTO);
    source_open_memory(&src, in, 2000);
    scan_init(&s, &config, &src);
    scan_out_init(&out);
    s.out = &out;
    s.flush = nothing_to_flush;
    ASSERT(scan_shard(&s, STR("a \"path\""), &err));
    check_lines(&out.lines);
    check_lines(&out.broken);
    ASSERT(out.sample.n == out.lines.n);
    scan_out_done(&out);
    scan_done(&s);
    source_done(&src);
}

static void read_all(struct str in)
{
    static struct seen a[MEMBERS_MAX];
    static struct seen b[MEMBERS_MAX];
    bool whole_a;
    bool whole_b;
    size_t n = walk(in, 1 << 20, a, &whole_a);
    ASSERT(walk(in, 700, b, &whole_b) == n);
    ASSERT(whole_a == whole_b);
    ASSERT(n == 0 || memcmp(a, b, n * sizeof *a) == 0);
    compare(in, a, n);
    scan(in);
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
