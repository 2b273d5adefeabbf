/* Aim: TFRecord framing, its checksum, and tf.train.Example messages byte for byte; Parquet files
 * that are joined, and footers that are damaged. Method: checksums of RFC 3720, messages put
 * together by hand from the protobuf encoding, files by DuckDB. */
#include "common/cleanup.h"
#include "download/part/duck.h"
#include "download/shard/output_format.h"
#include "download/shard/parquet_join.h"
#include "download/shard/tfrecord.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

static void test_worker_outputs__crc32c(void **state UNUSED)
{
    struct tfrecord_crc t;
    uint8_t b[48];
    tfrecord_crc_init(&t);
    memset(b, 0, sizeof b);
    assert_int_equal(tfrecord_crc32c(&t, b, 32), 0x8a9136aa);
    memset(b, 0xff, sizeof b);
    assert_int_equal(tfrecord_crc32c(&t, b, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++) {
        b[i] = (uint8_t)i;
    }
    assert_int_equal(tfrecord_crc32c(&t, b, 32), 0x46dd794e);
    assert_int_equal(tfrecord_crc32c(&t, "123456789", 9), 0xe3069283);
    assert_int_equal(tfrecord_crc32c(&t, "", 0), 0);
}

static void bytes_are(const struct buf *b, const char *hex)
{
    AUTO_BUF struct buf got = BUF_INIT(1u << 20);
    for (size_t i = 0; i < b->n; i++) {
        buf_addf(&got, "%02x", (uint8_t)b->p[i]);
    }
    assert_string_equal(buf_cstr(&got), hex);
}

static void test_worker_outputs__record(void **state UNUSED)
{
    struct tfrecord_crc t;
    AUTO_BUF struct buf b = BUF_INIT(1u << 10);
    tfrecord_crc_init(&t);
    tfrecord_add(&t, &b, STR("123456789"));
    /* length, mask(crc(length)), data, mask(0xe3069283) = rotate right 15, + 0xa282ead8 */
    bytes_are(&b, "0900000000000000"
                  "37f97139"
                  "313233343536373839"
                  "e5b08ac7");
}

/* Of one column: the entry of its feature in the message. */
static void feature_is(struct cell cell, const char *hex)
{
    struct columns c = {.n = 1, .caption_i = -1};
    c.at[0] = (struct column){(char *)(uintptr_t) "c", "X", cell.kind};
    struct shard_format f = {.rows_per_shard = 10, .digits = 5, .output = OUTPUT_TFRECORD};
    struct tfrecord_crc t;
    struct sample *s = sample_new(1);
    AUTO_BUF struct buf b = BUF_INIT(1u << 16);
    AUTO_BUF struct buf text = BUF_INIT(1u << 16);
    tfrecord_crc_init(&t);
    s->cells[0] = cell;
    tfrecord_add_sample(&t, &f, &c, s, &b);
    for (size_t i = 0; i < b.n; i++) {
        buf_addf(&text, "%02x", (uint8_t)b.p[i]);
    }
    if (strstr(buf_cstr(&text), hex) == NULL) {
        fail_msg("no %s in %s", hex, buf_cstr(&text));
    }
    sample_free(s);
}

static void test_worker_outputs__features(void **state UNUSED)
{
    /* entry: 0a n, key: 0a 01 63, value: 12 n, then bytes_list 0a, float_list 12, int64_list 1a */
    feature_is((struct cell){.kind = CELL_NULL}, "0a090a016312040a020a00");
    feature_is((struct cell){.kind = CELL_TEXT, .s = STR("ab")}, "0a0b0a016312060a040a026162");
    feature_is((struct cell){.kind = CELL_BOOL, .b = true}, "0a0a0a016312051a030a0101");
    feature_is((struct cell){.kind = CELL_INT, .i = 300}, "0a0b0a016312061a040a02ac02");
    feature_is((struct cell){.kind = CELL_INT, .i = -1},
               "0a130a0163120e1a0c0a0affffffffffffffffff01");
    feature_is((struct cell){.kind = CELL_UINT, .u = UINT64_MAX},
               "0a1d0a016312180a160a143138343436373434303733373039353531363135");
    feature_is((struct cell){.kind = CELL_DOUBLE, .d = 1.5}, "0a0d0a0163120812060a040000c03f");
    feature_is((struct cell){.kind = CELL_JSON, .s = STR("[1.0,2.5]")},
               "0a110a0163120c120a0a080000803f00002040");
    feature_is((struct cell){.kind = CELL_JSON, .s = STR("[1,300]")},
               "0a0c0a016312071a050a0301ac02");
    feature_is((struct cell){.kind = CELL_JSON, .s = STR("[\"a\",null,\"b\"]")},
               "0a0f0a0163120a0a080a01610a000a0162");
    feature_is((struct cell){.kind = CELL_JSON, .s = STR("[]")}, "0a050a01631200");
    feature_is((struct cell){.kind = CELL_JSON, .s = STR("[1,null]")},
               "0a110a0163120c0a0a0a085b312c6e756c6c5d");
    feature_is((struct cell){.kind = CELL_JSON, .s = STR("[[1]]")},
               "0a0e0a016312090a070a055b5b315d5d");
    feature_is((struct cell){.kind = CELL_JSON, .s = STR("{\"a\":1}")},
               "0a100a0163120b0a090a077b2261223a317d");
}

/* rows of a table of two columns as a Parquet file; unmap it. */
static struct str parquet_of(duckdb_connection con, const char *select)
{
    struct err err = ERR_INIT;
    struct stat st;
    int fd = memfd_create("test", MFD_CLOEXEC);
    AUTO_FREE char *sql = xasprintf(
        "COPY (%s) TO '/proc/self/fd/%d' (FORMAT parquet, USE_TMP_FILE false)", select, fd);
    assert_true(fd >= 0 && duck_query(con, sql, NULL, &err) && fstat(fd, &st) == 0);
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(p != MAP_FAILED);
    (void)close(fd);
    return (struct str){p, (size_t)st.st_size};
}

static int64_t number(duckdb_connection con, const char *what, int fd)
{
    struct err err = ERR_INIT;
    duckdb_result r;
    AUTO_FREE char *sql = xasprintf("SELECT %s '/proc/self/fd/%d')", what, fd);
    if (!duck_query(con, sql, &r, &err)) {
        fail_msg("%s: %s", sql, err.message);
    }
    int64_t n = duckdb_value_int64(&r, 0, 0);
    duckdb_destroy_result(&r);
    return n;
}

static void test_worker_outputs__joined_parquet(void **state UNUSED)
{
    struct duck duck;
    duckdb_connection con;
    struct err err = ERR_INIT;
    struct parquet_join j;
    struct str data;
    AUTO_BUF struct buf out = BUF_INIT(8u << 20);
    assert_true(duck_open(&duck, &err) && duck_connect(&duck, &con, &err));
    parquet_join_init(&j);
    for (int i = 0; i < 20; i++) { /* more than a short list holds */
        AUTO_FREE char *select =
            xasprintf("SELECT (i + %d)::BIGINT AS n, repeat('x%d', 50) AS t, [i, NULL] AS l FROM "
                      "range(100) r(i)",
                      100 * i, i);
        struct str file = parquet_of(con, select);
        assert_true(parquet_join_add(&j, file, &data, &err));
        buf_add_str(&out, data);
        (void)munmap((void *)(uintptr_t)file.p, file.n);
    }
    struct str other = parquet_of(con, "SELECT 1::BIGINT AS n, 2 AS t");
    assert_false(parquet_join_add(&j, other, &data, &err));
    (void)munmap((void *)(uintptr_t)other.p, other.n);
    assert_true(parquet_join_end(&j, &out, &err));
    int fd = memfd_create("joined", MFD_CLOEXEC);
    assert_int_equal(write(fd, out.p, out.n), out.n);
    assert_int_equal(number(con, "count(*) FROM read_parquet(", fd), 2000);
    assert_int_equal(number(con, "sum(n) FROM read_parquet(", fd), 1999 * 1000);
    assert_int_equal(number(con, "sum(l[1]) FROM read_parquet(", fd), 20 * 4950);
    assert_int_equal(number(con, "count(DISTINCT t) FROM read_parquet(", fd), 20);
    assert_int_equal(number(con,
                            "count(*) FILTER (t = repeat('x7', 50) AND n // 100 = 7) FROM "
                            "read_parquet(",
                            fd),
                     100);
    (void)close(fd);
    parquet_join_done(&j);
    duckdb_disconnect(&con);
    duck_close(&duck);
}

static void test_worker_outputs__damaged_footers(void **state UNUSED)
{
    struct duck duck;
    duckdb_connection con;
    struct err err = ERR_INIT;
    struct str data;
    assert_true(duck_open(&duck, &err) && duck_connect(&duck, &con, &err));
    struct str file = parquet_of(con, "SELECT i::INTEGER AS n, [i] AS l FROM range(9) r(i)");
    int refused = 0;
    for (size_t i = 0; i < file.n; i++) {
        for (int way = 0; way < 3; way++) {
            AUTO_FREE char *copy = xmalloc(file.n);
            struct parquet_join j;
            memcpy(copy, file.p, file.n);
            copy[i] = (char)(way == 0 ? 0 : way == 1 ? 0xff : copy[i] ^ 0x10);
            parquet_join_init(&j);
            struct str damaged = {copy, way == 0 ? i : file.n};
            refused += parquet_join_add(&j, damaged, &data, &err) ? 0 : 1;
            parquet_join_done(&j);
        }
    }
    assert_true(refused > (int)file.n); /* every shortened one, and more */
    (void)munmap((void *)(uintptr_t)file.p, file.n);
    duckdb_disconnect(&con);
    duck_close(&duck);
}

static void test_worker_outputs__stats_come_last(void **state UNUSED)
{
    for (int f = 0; f < OUTPUT_FORMAT_COUNT; f++) {
        const struct output_pieces *p = output_pieces((enum output_format)f);
        assert_true(p->n >= 1 && p->n <= OUTPUT_PIECES_MAX);
        assert_string_equal(p->suffix[p->n - 1], "_stats.json");
        assert_true(!output_has_sidecar((enum output_format)f) ||
                    strcmp(p->suffix[1], ".parquet") == 0);
        assert_non_null(output_format_names[f]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_outputs__crc32c),
        cmocka_unit_test(test_worker_outputs__record),
        cmocka_unit_test(test_worker_outputs__features),
        cmocka_unit_test(test_worker_outputs__joined_parquet),
        cmocka_unit_test(test_worker_outputs__damaged_footers),
        cmocka_unit_test(test_worker_outputs__stats_come_last),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
