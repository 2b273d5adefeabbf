/* Aim: the worker's small parts keep their word: queue, settings, contract, manifest, and decoding
 * processes that die. Method: threads against the queue's bound, settings with every fault, a
 * contract folder of its own, bodies that kill a decoder. */
#include "common/hash.h"
#include "download/decode/decode_pool.h"
#include "download/part/options.h"
#include "io/queue.h"
#include "job/manifest.h"
#include "job/sagemaker_container.h"
#include "worker_protocol.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct item {
    struct queue_item item;
    int v;
};

static void test_worker_parts__queue_keeps_order_and_ends(void **state UNUSED)
{
    struct queue *q = queue_new(100);
    struct item items[3] = {{.v = 0}, {.v = 1}, {.v = 2}};
    assert_null(queue_pop(q, false));
    assert_true(queue_push(q, &items[0].item, 60));
    assert_true(queue_push_now(q, &items[1].item, 60)); /* over the bound, without waiting */
    assert_int_equal(queue_bytes(q), 120);
    queue_close(q);
    assert_false(queue_push(q, &items[2].item, 1));
    assert_false(queue_ended(q));
    assert_ptr_equal(queue_pop(q, true), &items[0].item);
    assert_ptr_equal(queue_pop(q, true), &items[1].item);
    assert_null(queue_pop(q, true));
    assert_true(queue_ended(q));
    queue_free(q);
}

struct flow {
    struct queue *q;
    _Atomic size_t most;
    _Atomic int pushed;
};
#define FLOW_N     20000
#define FLOW_BYTES 10

static void *produce(void *arg)
{
    struct flow *f = arg;
    for (int i = 0; i < FLOW_N; i++) {
        struct item *it = xcalloc(1, sizeof *it);
        it->v = i;
        assert_true(queue_push(f->q, &it->item, FLOW_BYTES));
        f->most = MAX(f->most, queue_bytes(f->q));
        f->pushed++;
    }
    return NULL;
}

static void test_worker_parts__queue_bounds_bytes_between_threads(void **state UNUSED)
{
    struct flow f = {.q = queue_new(100)};
    pthread_t t[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, produce, &f), 0);
    }
    int64_t sum = 0;
    for (int i = 0; i < 2 * FLOW_N; i++) {
        struct queue_item *it = queue_pop(f.q, true);
        assert_non_null(it);
        sum += ((struct item *)(void *)it)->v;
        free(it);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(t[i], NULL), 0);
    }
    assert_int_equal(sum, (int64_t)FLOW_N * (FLOW_N - 1));
    assert_true(f.most <= 100);
    assert_int_equal(queue_bytes(f.q), 0);
    queue_free(f.q);
}

static bool load(struct download_options *o, struct buf *faults, const char *hyper, int argc,
                 const char *const *argv)
{
    json_t *h = hyper != NULL ? json_loads(hyper, 0, NULL) : NULL;
    bool ok = options_load(h, argc, (char *const *)(uintptr_t)argv, o, faults);
    json_decref(h);
    return ok;
}

static void *push_two(void *arg)
{
    struct flow *f = arg;
    static struct item small;
    static struct item large;
    assert_true(queue_push(f->q, &small.item, 1));
    assert_true(queue_push(f->q, &large.item, 90));
    return NULL;
}

/* A consumer that is not woken for little gets it all the same, and sees the end. */
static void test_worker_parts__queue_that_wakes_late_loses_nothing(void **state UNUSED)
{
    struct flow f = {.q = queue_new(100)};
    pthread_t t;
    queue_wake_at(f.q, 1000);
    assert_int_equal(pthread_create(&t, NULL, push_two, &f), 0);
    assert_non_null(queue_pop(f.q, true));
    assert_non_null(queue_pop(f.q, true));
    assert_int_equal(pthread_join(t, NULL), 0);
    queue_close(f.q);
    assert_null(queue_pop(f.q, true));
    queue_free(f.q);
}

static void test_worker_parts__settings(void **state UNUSED)
{
    struct download_options o;
    struct buf faults = BUF_INIT(8192);
    static const char *const argv[] = {
        "--image-size=300", "--allow-net", "127.0.0.1:80",     "--allow-net", "[::1]:81",
        "--parquet",        "p",           "--max_image_area", "1e6"};
    assert_true(load(&o, &faults,
                     "{\"output_folder\":\"out\",\"image_size\":\"100\",\"retries\":\"3\","
                     "\"sagemaker_x\":\"1\",\"save_additional_columns\":\"['a', \\\"b\\\"]\"}",
                     ARRAY_LEN(argv), argv));
    assert_int_equal(o.image_size, 300); /* a flag wins */
    assert_int_equal(o.retries, 3);
    assert_int_equal(o.rules.n, 2);
    assert_string_equal(o.url_list, "p");
    assert_int_equal(o.extra_columns_n, 2);
    assert_string_equal(o.extra_columns[1], "b");
    assert_true(o.image.max_area == 1e6);
    assert_int_equal(o.robots.n, 4);
    assert_int_equal(o.number_sample_per_shard, 10000);
    options_done(&o);
    static const struct {
        const char *hyper, *word;
    } bad[] = {
        {"{}", "output_folder is missing"},
        {"{\"output_folder\":\"o\",\"retrys\":\"1\"}", "did you mean 'retries'?"},
        {"{\"output_folder\":\"o\",\"zzzzzzzzzz\":\"1\"}", "unknown setting 'zzzzzzzzzz'\n"},
        {"{\"output_folder\":\"o\",\"image_size\":\"0\"}", "from 1 to 8192"},
        {"{\"output_folder\":\"o\",\"image_size\":\"9x\"}", "image_size '9x'"},
        {"{\"output_folder\":\"o\",\"image_size\":\"\"}", "image_size ''"},
        {"{\"output_folder\":\"o\",\"max_aspect_ratio\":\"-1\"}", "max_aspect_ratio"},
        {"{\"output_folder\":\"o\",\"max_image_area\":\"nan\"}", "max_image_area"},
        {"{\"output_folder\":\"o\",\"encode_format\":\"png\",\"encode_quality\":\"95\"}", "0 to 9"},
        {"{\"output_folder\":\"o\",\"encode_quality\":\"101\"}", "0 to 100"},
        {"{\"output_folder\":\"o\",\"compute_hash\":\"sha1\"}", "none, sha256, md5, sha512"},
        {"{\"output_folder\":\"o\",\"verify_hash\":\"['h','md5']\"}", "[\"column\",\"sha256\"]"},
        {"{\"output_folder\":\"o\",\"verify_hash\":\"h\"}", "verify_hash 'h'"},
        {"{\"output_folder\":\"o\",\"output_format\":\"tar\"}", "tfrecord, dummy"},
        {"{\"output_folder\":\"o\",\"output_format\":\"tfrecord\",\"bbox_col\":\"txt\"}",
         "output_format tfrecord's own"},
        {"{\"output_folder\":\"o\",\"output_format\":\"parquet\",\"encode_format\":\"webp\","
         "\"save_additional_columns\":\"webp\"}",
         "'webp' is a name of output_format parquet's own"},
        {"{\"output_folder\":\"o\",\"bbox_col\":\"faces\",\"disable_all_reencoding\":\"True\"}",
         "bbox_col 'faces': bytes that are kept unread show"},
        {"{\"output_folder\":\"o\",\"bbox_col\":\"sha256\"}", "bbox_col: 'sha256' is a name"},
        {"{\"output_folder\":\"o\",\"save_additional_columns\":\"[\\\"url\\\"]\"}", "'url'"}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        buf_reset(&faults);
        assert_false(load(&o, &faults, bad[i].hyper, 0, NULL));
        if (strstr(buf_cstr(&faults), bad[i].word) == NULL) {
            fail_msg("%s: %s", bad[i].hyper, buf_cstr(&faults));
        }
    }
    static const char *const odd[] = {"x", "--output"};
    buf_reset(&faults);
    assert_false(load(&o, &faults, NULL, ARRAY_LEN(odd), odd));
    assert_non_null(strstr(buf_cstr(&faults), "unexpected argument 'x'"));
    assert_non_null(strstr(buf_cstr(&faults), "--output needs a value"));
    buf_done(&faults);
}

static void test_worker_parts__causes_and_exits(void **state UNUSED)
{
    static const struct {
        struct err err;
        const char *cause;
        int exit;
    } cases[] = {{{.code = ERR_IO, .os_errno = ENOSPC}, "disk_full", WP_EXIT_DISK_FULL},
                 {{.code = ERR_IO, .os_errno = EDQUOT}, "disk_full", WP_EXIT_DISK_FULL},
                 {{.code = ERR_IO, .os_errno = EACCES}, "access_denied", WP_EXIT_NO_ACCESS},
                 {{.code = ERR_IO, .os_errno = EROFS}, "access_denied", WP_EXIT_NO_ACCESS},
                 {{.code = ERR_IO, .os_errno = EIO}, "internal", WP_EXIT_FAILED},
                 {{.code = ERR_IO, .os_errno = EMFILE}, "internal", WP_EXIT_FAILED},
                 {{.code = ERR_IO, .os_errno = ENOTDIR}, "bad_input", WP_EXIT_BAD_INPUT},
                 {{.code = ERR_IO, .os_errno = ESTALE}, "network", WP_EXIT_NETWORK},
                 {{.code = ERR_AWS, .http_status = 403}, "access_denied", WP_EXIT_NO_ACCESS},
                 {{.code = ERR_UNAUTHENTICATED}, "access_denied", WP_EXIT_NO_ACCESS},
                 {{.code = ERR_INTERNAL, .os_errno = ENOMEM}, "oom", WP_EXIT_FAILED},
                 {{.code = ERR_INVALID}, "bad_input", WP_EXIT_BAD_INPUT},
                 {{.code = ERR_NOT_FOUND, .http_status = 404}, "bad_input", WP_EXIT_BAD_INPUT},
                 {{.code = ERR_NETWORK}, "network", WP_EXIT_NETWORK},
                 {{.code = ERR_TIMEOUT}, "network", WP_EXIT_NETWORK},
                 {{.code = ERR_AWS, .http_status = 500}, "network", WP_EXIT_NETWORK},
                 {{.code = ERR_INTERNAL}, "unknown", WP_EXIT_FAILED},
                 {{.code = ERR_CONFLICT}, "unknown", WP_EXIT_FAILED}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_string_equal(sagemaker_container_cause(&cases[i].err), cases[i].cause);
        assert_int_equal(sagemaker_container_exit(cases[i].cause), cases[i].exit);
    }
}

static void test_worker_parts__contract_paths_and_failure(void **state UNUSED)
{
    char root[] = "/tmp/drover-contract-XXXXXX";
    assert_non_null(mkdtemp(root));
    assert_int_equal(setenv(WP_ENV_ML_ROOT, root, 1), 0);
    char *p = sagemaker_container_path("/opt/ml/input/x");
    char *want = xasprintf("%s/input/x", root);
    assert_string_equal(p, want);
    free(p);
    free(want);
    p = sagemaker_container_path("/opt/mlx");
    assert_string_equal(p, "/opt/mlx");
    free(p);
    json_t *h;
    struct err err = ERR_INIT;
    assert_true(sagemaker_container_hyperparameters(&h, &err));
    assert_null(h);
    sagemaker_container_fail("bad_input",
                             "nobody reads this"); /* no output/: nothing to write to */
    char *dir = xasprintf("%s/output", root);
    char *file = xasprintf("%s/failure", dir);
    assert_int_equal(access(file, F_OK), -1);
    assert_int_equal(mkdir(dir, 0700), 0);
    sagemaker_container_fail("bad_input", "why");
    char text[64] = "";
    FILE *f = fopen(file, "re");
    assert_non_null(f);
    assert_int_equal(fread(text, 1, sizeof text - 1, f), 14);
    assert_string_equal(text, "bad_input: why");
    (void)fclose(f);
    (void)unlink(file);
    (void)rmdir(dir);
    (void)rmdir(root);
    free(dir);
    free(file);
    (void)unsetenv(WP_ENV_ML_ROOT);
}

static void test_worker_parts__an_output_that_cannot_be_checked(void **state UNUSED)
{
    static const struct {
        const char *attempt;
        int64_t objects, name_bytes;
        bool can;
    } rows[] = {{"9", 200000, 0, true},
                {"9", 200001, 0, false},
                {"9", 100000, 10000000, true},
                {"9", 100000, 11000000, false},
                {"", 2000000, 0, true}}; /* by hand */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(
            manifest_can_be_checked(rows[i].attempt, rows[i].objects, rows[i].name_bytes, &err),
            rows[i].can);
        assert_int_equal(err.code, rows[i].can ? ERR_NONE : ERR_LIMIT);
    }
}

static void test_worker_parts__manifest_sums_up_rare_texts(void **state UNUSED)
{
    struct stats s = {0};
    char text[32];
    for (int i = 0; i < 300; i++) {
        (void)snprintf(text, sizeof text, "e%03d", i);
        stats_add(&s, STATUS_FAILED_TO_DOWNLOAD, text);
    }
    stats_add(&s, STATUS_SUCCESS, "success");
    stats_add(&s, STATUS_SUCCESS, "success");
    stats_sort(&s);
    struct sink_object o = {.name = (char *)(uintptr_t) "00000.tar", .size = 7, .etag = "x"};
    struct manifest m = {.task = "1",
                         .attempt = "2",
                         .rows_in = 302,
                         .rows_out = 302,
                         .total = s,
                         .objects = &o,
                         .objects_n = 1};
    struct buf b = BUF_INIT(1u << 20);
    manifest_json(&m, &b);
    json_t *v = json_loads(buf_cstr(&b), 0, NULL);
    assert_non_null(v);
    json_t *st = json_object_get(v, "statuses");
    assert_int_equal(json_object_size(st), MANIFEST_STATUSES_MAX + 1);
    assert_int_equal(json_integer_value(json_object_get(st, "success")), 2);
    assert_int_equal(json_integer_value(json_object_get(st, "(others)")),
                     301 - MANIFEST_STATUSES_MAX);
    char hex[SHA256_HEX_N];
    hash_sha256_hex("00000.tar\t7\tx\n", 14, hex);
    assert_string_equal(json_string_value(json_object_get(v, "sha256")), hex);
    json_decref(v);
    buf_done(&b);
    stats_done(&s);
}

static void test_worker_parts__decoders_answer_and_are_replaced(void **state UNUSED)
{
    struct image_options o = {
        .mode = RESIZE_NO, .format = IMAGE_PNG, .quality = 1, .max_area = 1e18, .max_aspect = 1e18};
    struct image im;
    struct decode_pool *pool;
    struct decode_pool_child *child;
    struct err err = ERR_INIT;
    assert_true(image_alloc(20, 10, 3, &im));
    memset(im.px, 9, 600);
    struct buf body = BUF_INIT(1u << 20);
    assert_int_equal(image_encode(&im, &o, &body), IMAGE_OK);
    struct decoded d = {.image = BUF_INIT(IMAGE_OUT_BYTES_MAX),
                        .exif = BUF_INIT(IMAGE_EXIF_BYTES_MAX)};
    bool died = true;
    assert_true(decode_pool_new(&o, &pool, &err));
    assert_true(decode_pool_child_new(pool, &child, &err));
    for (int i = 0; i < 50; i++) {
        buf_reset(&d.image);
        buf_reset(&d.exif);
        assert_true(decode_pool_decode(child, i % 2 == 0 ? buf_str(&body) : STR("no"), NULL, &d,
                                       &died, &err));
        assert_false(died);
        assert_int_equal(d.result, i % 2 == 0 ? IMAGE_OK : IMAGE_BAD);
        assert_true(i % 2 != 0 || (d.width == 20 && d.original_height == 10 && d.image.n > 50));
    }
    decode_pool_child_free(child);
    decode_pool_free(pool); /* returns when the fork server has ended */
    buf_done(&d.image);
    buf_done(&d.exif);
    buf_done(&body);
    image_done(&im);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_parts__queue_keeps_order_and_ends),
        cmocka_unit_test(test_worker_parts__queue_bounds_bytes_between_threads),
        cmocka_unit_test(test_worker_parts__queue_that_wakes_late_loses_nothing),
        cmocka_unit_test(test_worker_parts__settings),
        cmocka_unit_test(test_worker_parts__causes_and_exits),
        cmocka_unit_test(test_worker_parts__contract_paths_and_failure),
        cmocka_unit_test(test_worker_parts__an_output_that_cannot_be_checked),
        cmocka_unit_test(test_worker_parts__manifest_sums_up_rare_texts),
        cmocka_unit_test(test_worker_parts__decoders_answer_and_are_replaced),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (getenv("UNDER_VALGRIND") != NULL) { /* a decoder's sandbox refuses valgrind's own calls */
        cmocka_set_skip_filter("*__decoders_answer_and_are_replaced");
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
