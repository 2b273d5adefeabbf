/* Aim: the index walk over archives of every dialect and damage, the pairing of members, the
 * scanner of the picture's size and the writer of lines. Method: archives put together here header
 * by header, seen through windows from one byte up, each in memory of its exact size. */
#include "common/cleanup.h"
#include "common/json.h"
#include "common/tar.h"
#include "index/checkpoint.h"
#include "index/meta.h"
#include "index/scan.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ARCHIVE_MAX ((size_t)4 << 20)

static const size_t steps[] = {1, 511, 512, 513, 4096, 1 << 20};

static void seal(char *h)
{
    unsigned sum = 0;
    memset(h + 148, ' ', 8);
    for (int i = 0; i < TAR_BLOCK; i++) {
        sum += (uint8_t)h[i];
    }
    (void)snprintf(h + 148, 8, "%06o", sum);
}

/* A header without data behind it. magic: "ustar\0" "00", GNU's or none. */
static void add_header(struct buf *b, const char *name, long long size, char type,
                       const char *magic, const char *prefix)
{
    char h[TAR_BLOCK] = "";
    memcpy(h, name, MIN(strlen(name), (size_t)100));
    (void)snprintf(h + 100, 8, "%07o", 0444);
    (void)snprintf(h + 124, 12, "%011llo", size);
    (void)snprintf(h + 136, 12, "%011o", 1);
    h[156] = type;
    memcpy(h + 257, magic, 8);
    memcpy(h + 345, prefix, strlen(prefix));
    seal(h);
    buf_add(b, h, sizeof h);
}

static void add_data(struct buf *b, const char *p, size_t n)
{
    static const char zeros[TAR_BLOCK];
    buf_add(b, p, n);
    buf_add(b, zeros, (TAR_BLOCK - n % TAR_BLOCK) % TAR_BLOCK);
}

static void add_entry(struct buf *b, const char *name, char type, const char *data)
{
    add_header(b, name, (long long)strlen(data), type, "ustar\00000", "");
    add_data(b, data, strlen(data));
}

static void member_is(struct tarwalk *w, const char *name, int64_t offset, int64_t size)
{
    struct tarwalk_member m;
    struct err err = ERR_INIT;
    if (!tarwalk_next(w, &m, &err)) {
        fail_msg("no member, %s", err.message);
    }
    assert_int_equal(m.name.n, strlen(name));
    assert_memory_equal(m.name.p, name, m.name.n);
    assert_int_equal(m.offset, offset);
    assert_int_equal(m.size, size);
}

static void end_is(struct tarwalk *w, enum err_code code, int64_t at, const char *word)
{
    struct tarwalk_member m;
    struct err err = ERR_INIT;
    assert_false(tarwalk_next(w, &m, &err));
    if (err.code != code || strstr(err.message, word) == NULL) {
        fail_msg("%s: '%s', expected '%s'", err_code_name(err.code), err.message, word);
    }
    assert_int_equal(w->at, at);
}

static void test_worker_index__walk_names_and_offsets(void **state UNUSED)
{
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    char long_name[301];
    char pax[400];
    memset(long_name, 'n', 300);
    long_name[300] = '\0';
    (void)snprintf(pax, sizeof pax, "310 path=%s\n20 mtime=12345.6789\n", long_name);
    assert_int_equal(pax[309], '\n');
    add_entry(&b, "a.jpg", '0', "12345");                             /* 0 */
    add_header(&b, "b.txt", 0, '0', "ustar\00000", "folder");         /* 1024 */
    add_entry(&b, "x", 'x', pax);                                     /* 1536 */
    add_entry(&b, "cut", '0', "z");                                   /* 2560 */
    add_entry(&b, "././@LongLink", 'L', long_name);                   /* 3584 */
    add_header(&b, "cut", 0, '0', "ustar  ", "");                     /* 4608 */
    add_header(&b, "old", 0, '\0', "\0\0\0\0\0\0\0", "not a prefix"); /* 5120 */
    add_header(&b, "folder/", 0, '5', "ustar\00000", "");             /* 5632 */
    add_header(&b, "link", 700, '2', "ustar\00000", "");   /* 6144, a size that means nothing */
    add_header(&b, "old/", 0, '\0', "\0\0\0\0\0\0\0", ""); /* 6656 */
    add_entry(&b, "g", 'g', "17 comment=hello\n");         /* 7168 */
    add_entry(&b, "K", 'K', "link target");                /* 8192 */
    add_entry(&b, "last.json", '7', "{}");                 /* 9216 */
    tar_end(&b);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct source src;
        struct tarwalk w;
        source_init(&src, SOURCE_AUTO);
        source_open_memory(&src, buf_str(&b), steps[i]);
        tarwalk_init(&w, &src);
        member_is(&w, "a.jpg", 512, 5);
        member_is(&w, "folder/b.txt", 1536, 0);
        member_is(&w, long_name, 3072, 1);
        member_is(&w, long_name, 5120, 0);
        member_is(&w, "old", 5632, 0);
        member_is(&w, "last.json", 9728, 2);
        end_is(&w, ERR_NONE, 10240, "");
        assert_int_equal(w.others, 3);
        source_done(&src);
    }
}

/* A sparse archive of more than 8 GB is not at hand in memory: the size field is enough. */
static void test_worker_index__walk_large_sizes(void **state UNUSED)
{
    static const struct {
        const char *pax;
        const char *base256; /* the twelve bytes */
        long long octal;
        const char *word;
    } cases[] = {
        {NULL, "\x80\0\0\0\0\0\0\x02\0\0\0\0", 0, "past the end"},
        {NULL, "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 0, "not a number"},
        {NULL, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 0, "not a number"},
        {NULL, "12345x789012", 0, "not a number"},
        {"19 size=9000000000\n", NULL, 0, "past the end"},
        {"29 size=99999999999999999999\n", NULL, 0, "not a number"},
        {"11 size=-1\n", NULL, 0, "not a number"},
        {"8 size=\n", NULL, 0, "not a number"},
        {NULL, NULL, 077777777777LL, "past the end"},
        {NULL, NULL, 513, "past the end"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
        struct source src;
        struct tarwalk w;
        int64_t at = 0;
        if (cases[i].pax != NULL) {
            add_entry(&b, "x", 'x', cases[i].pax);
            at = strstr(cases[i].word, "end") != NULL ? 1024 : 0;
        }
        add_header(&b, "m", cases[i].octal, '0', "ustar\00000", "");
        if (cases[i].base256 != NULL) {
            memcpy(b.p + b.n - TAR_BLOCK + 124, cases[i].base256, 12);
            seal(b.p + b.n - TAR_BLOCK);
        }
        add_data(&b, "x", 1);
        source_init(&src, SOURCE_AUTO);
        source_open_memory(&src, buf_str(&b), 512);
        tarwalk_init(&w, &src);
        end_is(&w, ERR_MALFORMED, at, cases[i].word);
        source_done(&src);
    }
}

static void test_worker_index__walk_of_damaged(void **state UNUSED)
{
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    add_entry(&b, "x", 'x', "20 path=very/long/n\n");
    add_entry(&b, "a.jpg", '0', "12345");
    add_entry(&b, "b.jpg", '0', "1");
    size_t whole = b.n;
    tar_end(&b);
    struct source src;
    struct tarwalk w;
    struct tarwalk_member m;
    struct err err = ERR_INIT;
    source_init(&src, SOURCE_AUTO);
    for (size_t n = 0; n <= b.n; n++) { /* cut anywhere */
        source_open_memory(&src, (struct str){b.p, n}, 4096);
        tarwalk_init(&w, &src);
        int members = 0;
        while (tarwalk_next(&w, &m, &err)) {
            members++;
        }
        assert_int_equal(members, n >= whole ? 2 : n >= 2048 ? 1 : 0);
        assert_int_equal(err.code, n >= whole + TAR_BLOCK ? ERR_NONE : ERR_MALFORMED);
    }
    for (size_t i = 0; i < TAR_BLOCK; i++) { /* any byte of a header flipped */
        b.p[2048 + i] ^= 1;
        source_open_memory(&src, buf_str(&b), 4096);
        tarwalk_init(&w, &src);
        assert_true(tarwalk_next(&w, &m, &err));
        /* The byte behind the number of the checksum field is not looked at. */
        assert_int_equal(tarwalk_next(&w, &m, &err), i == 155);
        b.p[2048 + i] ^= 1;
    }
    source_done(&src);
}

static void test_worker_index__walk_refuses(void **state UNUSED)
{
    static const struct {
        char type;
        const char *data;
        const char *word;
    } cases[] = {
        {'S', "", "sparse"},
        {'x', "22 GNU.sparse.major=1\n", "sparse"},
        {'g', "10 path=x\n", "global"},
        {'g', "10 size=1\n", "global"},
        {'x', "8 path=x\n", "broken"},
        {'x', "11 path=x\n", "broken"},
        {'x', "x path=x\n", "broken"},
        {'x', "99999999999 path=x\n", "broken"},
        {'x', "8 pathx\n", "without '='"},
        {'x', "8 path=\n", "empty"},
        {'x', "10 path=x", "broken"},
        {'x', "10 path=x\n", "without its member"},
        {'L', "", "empty"},
        {'L', "name", "without its member"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
        struct source src;
        struct tarwalk w;
        add_entry(&b, "h", cases[i].type, cases[i].data);
        tar_end(&b);
        source_init(&src, SOURCE_AUTO);
        source_open_memory(&src, buf_str(&b), 512);
        tarwalk_init(&w, &src);
        struct tarwalk_member m;
        struct err err = ERR_INIT;
        assert_false(tarwalk_next(&w, &m, &err));
        if (strstr(err.message, cases[i].word) == NULL) {
            fail_msg("case %zu: '%s', expected '%s'", i, err.message, cases[i].word);
        }
        source_done(&src);
    }
}

struct world {
    struct buf tar;
    struct scan_config config;
    struct scan_out out;
    struct scan scan;
    struct source src;
    int flushed;
};

static bool on_flush(void *ctx, struct err *err UNUSED)
{
    struct world *w = ctx;
    w->flushed++;
    scan_out_reset(&w->out);
    return true;
}

static void world_init(struct world *w, unsigned fields)
{
    *w = (struct world){.config = {.fields = fields, .need_txt = true, .need_json = true}};
    buf_init(&w->tar, ARCHIVE_MAX);
    scan_out_init(&w->out);
    source_init(&w->src, SOURCE_AUTO);
    scan_init(&w->scan, &w->config, &w->src);
    w->scan.out = &w->out;
    w->scan.flush = on_flush;
    w->scan.ctx = w;
}

static void world_done(struct world *w)
{
    buf_done(&w->tar);
    scan_out_done(&w->out);
    scan_done(&w->scan);
    source_done(&w->src);
}

static void scan_it(struct world *w, size_t step)
{
    struct err err = ERR_INIT;
    source_open_memory(&w->src, buf_str(&w->tar), step);
    if (!scan_shard(&w->scan, STR("p/0.tar"), &err)) {
        fail_msg("%s", err.message);
    }
}

static void test_worker_index__lines(void **state UNUSED)
{
    struct world w;
    world_init(&w, 255);
    w.config.sample = true;
    w.config.sample_below = UINT64_MAX;
    add_entry(&w.tar, "d.1/00\"1.jpg", '0', "JPEG");
    add_entry(&w.tar, "d.1/00\"1.json", '0', "{\"width\": 384, \"height\":256}");
    add_entry(&w.tar, "d.1/00\"1.txt", '0', "a \"q\"\n\x01\xc3\xa9 \xff end of a longer caption");
    add_entry(&w.tar, "2.TXT", '0', "");
    add_entry(&w.tar, "2.json", '0', "{\"height\":1,\"width\":2}");
    add_entry(&w.tar, "2.WebP", '0', "W");
    tar_end(&w.tar);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        scan_it(&w, steps[i]);
        assert_string_equal(
            buf_cstr(&w.out.lines),
            "{\"path\":\"p/0.tar\",\"key\":\"d.1/00\\\"1\",\"image\":\"d.1/"
            "00\\\"1.jpg\",\"offset\":512,"
            "\"size\":4,\"caption\":\"a \\\"q\\\"\\n\\u0001\xc3\xa9 \xef\xbf\xbd end of a longer "
            "caption\",\"width\":384,\"height\":256}\n"
            "{\"path\":\"p/0.tar\",\"key\":\"2\",\"image\":\"2.WebP\",\"offset\":5120,\"size\":1,"
            "\"caption\":\"\",\"width\":2,\"height\":1}\n");
        assert_string_equal(buf_cstr(&w.out.sample), buf_cstr(&w.out.lines));
        assert_int_equal(w.out.broken.n, 0);
        scan_out_reset(&w.out);
    }
    assert_int_equal(w.scan.counts.pairs[PAIR_WHOLE], 2 * (int)ARRAY_LEN(steps));
    world_done(&w);
}

static void broken_is(const char *names, enum pair_fault want, unsigned fields)
{
    struct world w;
    world_init(&w, fields);
    struct str rest = str_of(names);
    while (rest.n > 0) {
        struct str name = str_split(&rest, ' ');
        AUTO_FREE char *n = str_dup(name);
        char *data = strchr(n, '=');
        if (data != NULL) {
            *data++ = '\0';
        }
        add_entry(&w.tar, n, '0', data != NULL ? data : "x");
    }
    tar_end(&w.tar);
    scan_it(&w, 4096);
    for (size_t i = 0; i < PAIR_FAULT_COUNT; i++) {
        if (w.scan.counts.pairs[i] != (i == (size_t)want ? 1 : 0)) {
            fail_msg("'%s': %lld times '%s'", names, (long long)w.scan.counts.pairs[i],
                     pair_fault_text((enum pair_fault)i));
        }
    }
    assert_int_equal(w.scan.first_broken, want);
    if (want != PAIR_WHOLE) {
        AUTO_JSON json_t *v = NULL;
        const char *text;
        struct err err = ERR_INIT;
        assert_true(json_parse(buf_str(&w.out.broken), 4096, &v, &err));
        assert_true(json_get_required_str(v, "error", &text, &err));
        assert_string_equal(text, pair_fault_text(want));
        assert_int_equal(w.out.lines.n, 0);
    }
    world_done(&w);
}

static void test_worker_index__broken_pairs(void **state UNUSED)
{
    broken_is("a.jpg a.json a.txt", PAIR_WHOLE, 31);
    broken_is("a.jpeg a.cls a.json a.txt", PAIR_WHOLE, 31);
    broken_is("a.jpg a.json", PAIR_NO_TXT, 31);
    broken_is("a.jpg a.txt", PAIR_NO_JSON, 31);
    broken_is("a.json a.txt", PAIR_NO_IMAGE, 31);
    broken_is("a.gif a.json a.txt", PAIR_NO_IMAGE, 31);
    broken_is("a.b.jpg a.json a.txt", PAIR_NO_IMAGE, 31);
    broken_is("a.jpg= a.json a.txt", PAIR_EMPTY_IMAGE, 31);
    broken_is("a.jpg a.json a.png a.txt", PAIR_TWICE, 31);
    broken_is("a.jpg a.json a.txt a.txt", PAIR_TWICE, 31);
    broken_is("a.jpg a.json={ a.txt", PAIR_BAD_JSON, 255);
    broken_is("a.jpg a.json={} a.txt", PAIR_NO_SIZE, 255);
    broken_is("a.jpg a.json= a.txt", PAIR_BAD_JSON, 255);
    broken_is("a.jpg a.json={\"width\":1,\"height\":1} a.txt", PAIR_WHOLE, 255);
}

static void test_worker_index__others_and_neighbours(void **state UNUSED)
{
    struct world w;
    world_init(&w, LINE_KEY | LINE_CAPTION);
    w.config.need_txt = false;
    add_entry(&w.tar, "README", '0', "x");
    add_entry(&w.tar, ".hidden.jpg", '0', "x");
    add_entry(&w.tar, "end.", '0', "x");
    add_entry(&w.tar, "k.cls", '0', "x"); /* a sample without any of ours is no pair */
    add_entry(&w.tar, "a.jpg", '0', "x");
    add_entry(&w.tar, "a.json", '0', "x");
    add_entry(&w.tar, "ab.jpg", '0', "x");
    add_entry(&w.tar, "d/ab.json", '0', "x"); /* another key */
    add_entry(&w.tar, "b.jpg", '0', "x");
    add_entry(&w.tar, "b.json", '0', "x");
    tar_end(&w.tar);
    scan_it(&w, 700);
    assert_string_equal(buf_cstr(&w.out.lines), "{\"key\":\"a\",\"caption\":null}\n"
                                                "{\"key\":\"b\",\"caption\":null}\n");
    assert_int_equal(w.scan.counts.others, 4);
    assert_int_equal(w.scan.counts.pairs[PAIR_NO_JSON], 1);
    assert_int_equal(w.scan.counts.pairs[PAIR_NO_IMAGE], 1);
    assert_int_equal(w.scan.counts.members, 10);
    world_done(&w);
}

static void test_worker_index__cut_archive_keeps_what_is_whole(void **state UNUSED)
{
    struct world w;
    world_init(&w, LINE_KEY);
    add_entry(&w.tar, "a.jpg", '0', "x");
    add_entry(&w.tar, "a.json", '0', "x");
    add_entry(&w.tar, "a.txt", '0', "x");
    add_entry(&w.tar, "b.jpg", '0', "x");
    w.tar.n -= 100;
    scan_it(&w, 700);
    assert_string_equal(buf_cstr(&w.out.lines), "{\"key\":\"a\"}\n");
    assert_int_equal(w.scan.counts.bad_tars, 1);
    assert_int_equal(w.scan.fault_at, 3072);
    assert_int_equal(w.scan.fault.code, ERR_MALFORMED);
    assert_non_null(
        strstr(buf_cstr(&w.out.broken), "\"offset\":3072,\"error\":\"data reaches past"));
    scan_out_reset(&w.out);
    w.tar.n = 3072; /* and the next shard begins clean */
    tar_end(&w.tar);
    scan_it(&w, 700);
    assert_int_equal(w.scan.fault.code, ERR_NONE);
    assert_string_equal(buf_cstr(&w.out.lines), "{\"key\":\"a\"}\n");
    world_done(&w);
}

static void test_worker_index__sample_is_by_key(void **state UNUSED)
{
    /* Worked out by a Python of twelve lines. */
    assert_int_equal(line_key_hash(STR("")), UINT64_C(0xefd01f60ba992926));
    int in_1 = 0;
    int in_5 = 0;
    for (int i = 0; i < 100000; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "%09d", i);
        uint64_t h = line_key_hash(str_of(key));
        in_1 += h < UINT64_MAX / 100 ? 1 : 0;
        in_5 += h < UINT64_MAX / 20 ? 1 : 0;
    }
    assert_in_range(in_1, 905, 1095); /* three sigma */
    assert_in_range(in_5, 4793, 5207);
}

static void test_worker_index__flush_keeps_memory_bounded(void **state UNUSED)
{
    struct world w;
    world_init(&w, LINE_CAPTION);
    AUTO_FREE char *caption = xcalloc(1, 300001);
    memset(caption, '\n', 300000);
    for (int i = 0; i < 12; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%d.jpg", i);
        add_entry(&w.tar, name, '0', "x");
        (void)snprintf(name, sizeof name, "%d.json", i);
        add_entry(&w.tar, name, '0', "x");
        (void)snprintf(name, sizeof name, "%d.txt", i);
        add_entry(&w.tar, name, '0', caption);
    }
    tar_end(&w.tar);
    assert_false(w.tar.overflow);
    scan_it(&w, 4096);
    assert_int_equal(w.flushed, 6);
    assert_int_equal(w.scan.counts.pairs[PAIR_WHOLE], 12);
    assert_false(w.out.lines.overflow);
    world_done(&w);
}

static void size_is(const char *json, enum meta_result want, int64_t width, int64_t height)
{
    int64_t w = 0;
    int64_t h = 0;
    size_t n = strlen(json);
    AUTO_FREE char *exact = xmalloc(n + 1);
    memcpy(exact, json, n);
    enum meta_result got = meta_size((struct str){exact, n}, &w, &h);
    if (got != want || w != width || h != height) {
        fail_msg("'%s': %d, %lld x %lld", json, (int)got, (long long)w, (long long)h);
    }
}

static void test_worker_index__size_of_json(void **state UNUSED)
{
    size_is("{\"width\":3,\"height\":4}", META_OK, 3, 4);
    size_is(
        " {\n    \"caption\": \"\\\"width\\\": 9, \\\\\",\n    \"height\": 1048576,\n"
        "    \"exif\": {\"width\": 7, \"a\": [1, {\"height\": 8}]}, \"x\": null, \"width\":1 } \n",
        META_OK, 1, 1048576);
    size_is("{\"a\":NaN,\"width\":5,\"b\":-1.5e3,\"height\":6,\"c\":true}", META_OK, 5, 6);
    size_is("{}", META_NO_SIZE, 0, 0);
    size_is("{\"width\":3}", META_NO_SIZE, 0, 0);
    size_is("{\"width\":3,\"height\":0}", META_NO_SIZE, 0, 0);
    size_is("{\"width\":3,\"height\":-4}", META_NO_SIZE, 0, 0);
    size_is("{\"width\":3,\"height\":4.5}", META_NO_SIZE, 0, 0);
    size_is("{\"width\":3,\"height\":\"4\"}", META_NO_SIZE, 0, 0);
    size_is("{\"width\":3,\"height\":1048577}", META_NO_SIZE, 0, 0);
    size_is("{\"width\":3,\"height\":99999999999999999999999}", META_NO_SIZE, 0, 0);
    size_is("{\"width\":3,\"height\":[4]}", META_NO_SIZE, 0, 0);
    static const char *const bad[] = {
        "",           "null",          "[]",           "{",
        "{\"a\"",     "{\"a\":",       "{\"a\":1",     "{\"a\":1,",
        "{\"a\":1,}", "{\"a\" 1}",     "{a:1}",        "{\"a\":}",
        "{\"a\":\"",  "{\"a\":\"\\\"", "{\"a\":[}",    "{\"a\":[}]}",
        "{\"a\":1}x", "{\"a\":1}{}",   "{\"a\":\"x\\", "{\"a\":1 2}",
        "{,}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        size_is(bad[i], META_BAD, 0, 0);
    }
    AUTO_BUF struct buf deep = BUF_INIT(1 << 20);
    buf_add_cstr(&deep, "{\"a\":");
    for (int i = 0; i < 100000; i++) {
        buf_add_char(&deep, '[');
    }
    int64_t w;
    assert_int_equal(meta_size(buf_str(&deep), &w, &w), META_BAD);
}

/* Every byte value at every place of the sixteen looked at at once: as jansson reads it back. */
static void test_worker_index__escapes_read_back(void **state UNUSED)
{
    for (int c = 0; c < 256; c++) {
        for (size_t at = 0; at < 40; at += 3) {
            char text[41];
            memset(text, 'a', 40);
            text[at] = (char)c;
            AUTO_BUF struct buf out = BUF_INIT(4096);
            line_escape(&out, (struct str){text, 40});
            json_t *v = json_loadb(out.p, out.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
            assert_non_null(v);
            if (c < 0x80) {
                assert_int_equal(json_string_length(v), 40);
                assert_memory_equal(json_string_value(v), text, 40);
            } else {
                assert_int_equal(json_string_length(v), 42);
                assert_memory_equal(json_string_value(v) + at, "\xef\xbf\xbd", 3);
            }
            json_decref(v);
        }
    }
}

static void write_shard(const char *path, const char *text, time_t at)
{
    const struct timespec times[2] = {{.tv_sec = at}, {.tv_sec = at}};
    FILE *f = fopen(path, "w");
    assert_true(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void fingerprint(const char *input, char out[static 65])
{
    const struct scan_config c = {.fields = 1};
    struct shards s = {0};
    struct err err = ERR_INIT;
    assert_true(shards_list(input, &s, &err));
    checkpoint_fingerprint(&c, "", &s, out);
    shards_done(&s);
}

/* A checkpoint is of the files as they were, in a folder and as the only input. */
static void test_worker_index__rewritten_shard_is_another(void **state UNUSED)
{
    char folder[] = "/tmp/drover-index-XXXXXX";
    char sums[2][4][65];
    assert_non_null(mkdtemp(folder));
    AUTO_FREE char *path = xasprintf("%s/00000.tar", folder);
    for (size_t i = 0; i < 4; i++) { /* twice the same, a later one, a longer one */
        write_shard(path, i < 3 ? "12345678" : "123456789", i == 2 ? 1001 : 1000);
        fingerprint(folder, sums[0][i]);
        fingerprint(path, sums[1][i]);
    }
    for (size_t k = 0; k < 2; k++) {
        assert_string_equal(sums[k][0], sums[k][1]);
        assert_string_not_equal(sums[k][0], sums[k][2]);
        assert_string_not_equal(sums[k][0], sums[k][3]);
    }
    assert_int_equal(unlink(path) + rmdir(folder), 0);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_index__walk_names_and_offsets),
        cmocka_unit_test(test_worker_index__walk_large_sizes),
        cmocka_unit_test(test_worker_index__walk_of_damaged),
        cmocka_unit_test(test_worker_index__walk_refuses),
        cmocka_unit_test(test_worker_index__lines),
        cmocka_unit_test(test_worker_index__broken_pairs),
        cmocka_unit_test(test_worker_index__others_and_neighbours),
        cmocka_unit_test(test_worker_index__cut_archive_keeps_what_is_whole),
        cmocka_unit_test(test_worker_index__sample_is_by_key),
        cmocka_unit_test(test_worker_index__flush_keeps_memory_bounded),
        cmocka_unit_test(test_worker_index__size_of_json),
        cmocka_unit_test(test_worker_index__escapes_read_back),
        cmocka_unit_test(test_worker_index__rewritten_shard_is_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
