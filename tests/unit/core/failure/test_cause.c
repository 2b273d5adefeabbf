/* Aim: a failure text gets the cause a person would give it, and no text gets a guess.
 * Method: a labelled corpus of public texts (tests/vectors/failures.tsv), row by row; then the
 * rules that no corpus can show: our worker's word wins, our own stop is no failure, junk stays
 * unknown. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "core/failure/cause.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static enum cause of_failed(const char *reason)
{
    return cause_of_job(JOB_END_FAILED, str_of(reason), false);
}

#define assert_cause(got, want) assert_string_equal(cause_name(got), cause_name(CAUSE_##want))

/* \n of the corpus to a line break. */
static void unescape(struct str s, struct buf *out)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\' && i + 1 < s.n && s.p[i + 1] == 'n') {
            buf_add_char(out, '\n');
            i++;
        } else {
            buf_add_char(out, s.p[i]);
        }
    }
}

static enum cause of_row(struct str where, struct str status, struct str code, struct str text)
{
    if (!str_eq_cstr(where, "api_error")) {
        return cause_of_job(JOB_END_FAILED, text, false);
    }
    struct err err = ERR_INIT;
    int64_t http = 0;
    if (!parse_i64(status, 100, 599, &http, &err)) {
        http = 0;
    }
    AUTO_FREE char *c = str_dup(code);
    return cause_of_refusal((int)http, c, text);
}

static void test_cause__corpus_is_classified(void **state)
{
    (void)state;
    AUTO_FILE FILE *f = fopen("tests/vectors/failures.tsv", "r");
    assert_non_null(f);
    char line[8192];
    int rows = 0;
    int right = 0;
    int guessed = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        struct str rest = str_trim(str_of(line));
        if (rest.n == 0 || rest.p[0] == '#' || str_starts(rest, "where\t")) {
            continue;
        }
        struct str field[6];
        for (int i = 0; i < 6; i++) {
            field[i] = str_split(&rest, '\t');
        }
        AUTO_BUF struct buf text = BUF_INIT(16384);
        unescape(field[4], &text);
        enum cause got = of_row(field[0], field[1], field[2], buf_str(&text));
        rows++;
        right += str_eq_cstr(field[3], cause_name(got));
        guessed += str_eq_cstr(field[3], "unknown") && got != CAUSE_UNKNOWN;
        if (!str_eq_cstr(field[3], cause_name(got))) {
            (void)printf("# wrong: " STR_FMT ", not %s: %.120s\n", STR_ARG(field[3]),
                         cause_name(got), buf_cstr(&text));
        }
    }
    (void)printf("# %d of %d texts right\n", right, rows);
    assert_true(rows >= 150);
    assert_true(right * 100 >= rows * 97);
    assert_int_equal(guessed, 0);
}

static void assert_rows(const char *const rows[][2], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *got = cause_name(of_failed(rows[i][0]));
        if (strcmp(got, rows[i][1]) != 0) {
            fail_msg("%s, not %s: %s", got, rows[i][1], rows[i][0]);
        }
    }
}

static void test_cause__further_wordings(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"ExecuteUserScriptError:\nExitCode 1\nErrorMessage \"OSError: [Errno 28] No space left on "
         "device\"",
         "disk_full"},
        {"ClientError: Data download failed:Could not download s3://b/x.parquet: The specified key "
         "does not exist",
         "bad_input"},
        {"ClientError: Data download failed:failed to download data. NoSuchKey (404)", "bad_input"},
        {"ClientError: Data download failed:Line 2 of the augmented manifest: it has no attribute "
         "'class' 's3://b/a.manifest'",
         "bad_input"},
        {"ClientError: Data download failed:Line 1 of the augmented manifest: s3://b/x: Failed to "
         "download data. AccessDenied (403) 's3://b/a.manifest'",
         "access_denied"},
        {"ClientError: Data download failed:The gzip file is corrupt 's3://b/x.gz'", "bad_input"},
        {"AlgorithmError: ExecuteUserScriptError:\nOutOfMemory: Process killed by SIGKILL (signal "
         "9), exit code: 137",
         "oom"},
        {"We currently do not have sufficient ml.p4d.24xlarge capacity in the Availability Zone "
         "you requested",
         "capacity"},
        {"InternalServerError: We encountered an internal error", "internal"},
        {"MaxRuntimeExceeded", "timeout"},
        {"Server.InsufficientInstanceCapacity: There was insufficient instance capacity to satisfy "
         "the launch request",
         "capacity"},
        {"Spot Instance interruption notice received", "spot_interrupted"},
        {"You have requested more vCPU capacity than your current vCPU limit of 32 allows",
         "quota"},
        {"VcpuLimitExceeded: the limit", "quota"},
        {"OSError: [Errno 122] Disk quota exceeded", "disk_full"},
        {"toomanyrequests: You have reached your pull rate limit", "throttled"},
        {"Please reduce your request rate. (Service: Amazon S3; Status Code: 503; Error Code: "
         "SlowDown)",
         "throttled"},
        {"fatal error: An error occurred (403) when calling the HeadObject operation: Forbidden",
         "access_denied"},
        {"The provided token has expired.", "access_denied"},
        {"ssh: connect to host algo-2 port 22: Connection refused", "network"},
        {"torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 "
         "clients joined.",
         "network"},
        {"dial tcp 10.0.0.1:443: i/o timeout", "network"},
        {"NVRM: Xid (PCI:0000:00:1e): 48, pid=1234, Double Bit ECC Error", "internal"},
        {"standard_init_linux.go:228: exec user process caused: exec format error", "bad_image"},
        {"/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by python)",
         "bad_image"},
        {"OCI runtime create failed: exec: \"train\": executable file not found in $PATH",
         "bad_image"},
        {"duckdb.InvalidInputException: No magic bytes found at end of file 'part-00001.parquet'",
         "bad_input"},
        {"json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", "bad_input"},
        {"Traceback (most recent call last):\n  File \"t.py\", line 1\nValueError: bad shape",
         "user_code"},
        {"subprocess.CalledProcessError: Command '['python']' returned non-zero exit status 1.",
         "user_code"},
        {"1 validation error detected: Value 'x' at 'instanceType' failed to satisfy constraint",
         "bad_request"},
        {"slurmstepd: error: *** JOB 12 CANCELLED DUE TO TIME LIMIT ***", "timeout"},
        {"The job was cancelled", "stopped"},
        {"ClientError: something new", "unknown"},
        {"Exited with code 255", "unknown"},
        {"status changed to Failed", "unknown"},
    };
    assert_rows(rows, ARRAY_LEN(rows));
}

static void test_cause__names_numbers_and_what_was_raised_last(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        /* what was raised last decides, unless it only says that something was raised */
        {"Traceback (most recent call last):\n  File \"a.py\", line 1\nOSError: [Errno 28] No "
         "space "
         "left on device\n\nDuring handling of the above exception, another exception occurred:\n\n"
         "Traceback (most recent call last):\n  File \"b.py\", line 2\nConnectionResetError: "
         "[Errno "
         "104] Connection reset by peer",
         "network"},
        {"Traceback (most recent call last):\n  File \"a.py\", line 1\nOSError: [Errno 28] No "
         "space left "
         "on device\n\nTraceback (most recent call last):\n  File \"b.py\", line 2\nRuntimeError: "
         "save",
         "disk_full"},
        /* names of codes and exceptions, in parts */
        {"FooLimitExceededException: x", "quota"},
        {"InvalidFooBar.NotFound: x", "bad_request"},
        {"pkg.errors.FooAccessDeniedError: x", "access_denied"},
        {"pkg.errors.InvalidFooError: x", "user_code"},
        {"BAR ACCESS_DENIED during Foo", "access_denied"},
        /* numbers of libraries, a shell's word alone in its line */
        {"curl: (7)", "network"},
        {"curl: (78) x", "bad_input"},
        {"cuda runtime error (2) : x", "oom"},
        {"step 1\nKilled", "oom"},
        {"step 1\nTerminated\n", "stopped"},
        {"Bus error (core dumped)", "oom"},
        {"He was Terminated by it", "unknown"},
    };
    assert_rows(rows, ARRAY_LEN(rows));
}

/* Only what was said counts: not the colours, boxes and progress of a terminal, nor the code and
 * the command lines that stand around it. */
static void test_cause__what_stands_around_the_words_is_not_read(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"\x1b[31mOut\x1b[0m of mem\x1b[1mory\x1b[0m", "oom"},
        {"step 1\rstep 2, no space left on device\rdone", "unknown"},
        {"Traceback (most recent call last):\n  File \"t.py\", line 3, in main\n"
         "    raise_on(\"no space left on device\")\nValueError: bad shape",
         "user_code"},
        {"[rank0]: Traceback (most recent call last):\n[rank0]:   File \"t.py\", line 3, in main\n"
         "[rank0]:     wait(\"connection refused\")\n[rank0]: ValueError: bad shape",
         "user_code"},
        {"Command \"python train.py --on-error 'connection refused'\"\nValueError: bad shape",
         "user_code"},
        {"CalledProcessError: Command '['/bin/sh', 'out of memory']' returned non-zero exit status "
         "1.",
         "user_code"},
        {"java.lang.Exception: x\n\tat net.Socket.connectionRefused(AccessDenied.java:7)\n"
         "Caused by: java.lang.OutOfMemoryError: Java heap space",
         "oom"},
        {"Error for Training job ecc-socket-1: Failed. Reason: ValueError: bad shape", "user_code"},
        {"2026-01-01 00:00:00 INFO out of memory is handled\nValueError: bad shape", "user_code"},
    };
    assert_rows(rows, ARRAY_LEN(rows));
}

static void test_cause__a_chain_is_read_from_its_end(void **state)
{
    (void)state;
#define RAISED(words) "Traceback (most recent call last):\n  File \"a.py\", line 1\n" words "\n\n"
#define THEN          "During handling of the above exception, another exception occurred:\n\n"
    static const char *const rows[][2] = {
        /* the last that says why, and no line before the traceback */
        {RAISED("OSError: [Errno 28] No space left on device") THEN RAISED("RuntimeError: save"),
         "disk_full"},
        {"WARN [Errno 104] Connection reset by peer, retried\n" RAISED(
             "TypeError: 'int' object is not callable"),
         "user_code"},
        {RAISED("ConnectionResetError: [Errno 104] Connection reset by peer")
             THEN RAISED("TypeError: 'int' object is not callable"),
         "network"},
        {RAISED("MemoryError") THEN RAISED("OSError: [Errno 28] No space left on device"),
         "disk_full"},
    };
    assert_rows(rows, ARRAY_LEN(rows));
#undef RAISED
#undef THEN
}

/* What a program says by its words, where the same word elsewhere says nothing. */
static void test_cause__words_count_where_they_stand(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        /* a pair of words, near and far apart */
        {"walltime of the job was exceeded", "timeout"},
        {"the hardware will fail", "internal"},
        {"the hardware of 1 is up, and of 2, and of 3, and of 4, and of 5, and of 6, and of 7, and "
         "of 8, and of 9, and of 10, and of 11, and of 12, or else it would fail",
         "unknown"},
        /* a service refuses: by a code that is known, or by none */
        {"An error occurred (ValidationException) when calling the CreateModel operation: new "
         "words",
         "bad_request"},
        {"An error occurred (BrandNewProblem) when calling the CreateModel operation: new words",
         "bad_request"},
        {"AWS Error [code 99]: words", "network"},
        /* a column that is not there: the data's fault while its rows are gone through */
        {"Traceback (most recent call last):\n  File \"/x/datasets/arrow_dataset.py\", line 1, in "
         "apply\n    f()\n  File \"t.py\", line 3, in f\n    row['url']\nKeyError: 'url'",
         "bad_input"},
        {"Traceback (most recent call last):\n  File \"t.py\", line 3, in f\n    env['url']\n"
         "KeyError: 'url'",
         "user_code"},
        /* the text begins behind the head of the frame */
        {"    url = info['url']\nKeyError: 'url'", "bad_input"},
        {"    url = env['url']\nKeyError: 'url'", "user_code"},
        {"Auf dem Ger\xc3\xa4t ist kein Speicherplatz mehr verf\xc3\xbcgbar", "disk_full"},
        {"Failed to copy: NotImplemented: status code: 501", "bad_request"},
    };
    assert_rows(rows, ARRAY_LEN(rows));
}

/* An answer with a status came from somebody; 400 is also said of a broken answer. */
static void test_cause__a_status_says_that_the_service_was_reached(void **state)
{
    (void)state;
    assert_cause(of_failed("CommError: Error uploading run: returned error 503"), INTERNAL);
    assert_cause(of_failed("CommError: Error uploading run: returned error 404"), BAD_INPUT);
    assert_cause(of_failed("CommError: Error uploading run: returned error 400"), NETWORK);
    assert_cause(of_failed("CommError: Error uploading run"), NETWORK);
    assert_cause(of_failed("Request failed [503]."), INTERNAL);
    assert_cause(of_failed("Step failed [503]."), UNKNOWN);
}

static void test_cause__a_traceback_cut_before_its_exception_tells_by_its_assert(void **state)
{
    (void)state;
    assert_cause(of_failed("  File \"a.py\", line 3, in f\n"
                           "    assert n == 4"),
                 USER_CODE);
    assert_cause(of_failed("  File \"a.py\", line 3, in f\n"
                           "    n = g(4)"),
                 UNKNOWN);
}

static void test_cause__our_workers_words_stand_alone(void **state)
{
    static const char *const rows[][2] = {
        {"AlgorithmError: bad_input: 'a, b' has no column 'url': x, y, exit code: 65",
         "'a, b' has no column 'url': x, y"},
        {"AlgorithmError: disk_full: shard 7\n, exit code: 74", "shard 7"},
        {"AlgorithmError: bad_input: cut off by", "cut off by"},
        {"AlgorithmError: weird: boom, exit code: 1", "AlgorithmError: weird: boom, exit code: 1"},
        {"AlgorithmError: , exit code: 3", "AlgorithmError: , exit code: 3"},
        {"AlgorithmError: oom: , exit code: 1", "AlgorithmError: oom: , exit code: 1"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *got = str_dup(cause_words(str_of(rows[i][0])));
        assert_string_equal(got, rows[i][1]);
    }
}

static void test_cause__our_workers_word_wins(void **state)
{
    (void)state;
    assert_cause(of_failed("AlgorithmError: bad_input: part has no column 'url', exit code: 65"),
                 BAD_INPUT);
    assert_cause(of_failed("AlgorithmError: access_denied: s3://b/k: no space left, exit code: 77"),
                 ACCESS_DENIED);
    assert_cause(of_failed("AlgorithmError: disk_full: shard 7, exit code: 74"), DISK_FULL);
    assert_cause(of_failed("AlgorithmError: network: connection refused, exit code: 75"), NETWORK);
    assert_cause(of_failed("AlgorithmError: unknown: out of memory, exit code: 1"), UNKNOWN);
    /* a word that is no cause, or no word at all */
    assert_cause(of_failed("AlgorithmError: weird: out of memory, exit code: 1"), OOM);
    assert_cause(of_failed("AlgorithmError: none: boom, exit code: 1"), USER_CODE);
    assert_cause(of_failed("AlgorithmError: disk_full"), UNKNOWN);
    assert_cause(of_failed("disk_full: not from an algorithm"), UNKNOWN);
}

static void test_cause__exit_codes_speak_when_words_do_not(void **state)
{
    (void)state;
    assert_cause(of_failed("AlgorithmError: , exit code: 1"), USER_CODE);
    assert_cause(of_failed("AlgorithmError: , exit code: 65"), BAD_INPUT);
    assert_cause(of_failed("AlgorithmError: , exit code: 74"), DISK_FULL);
    assert_cause(of_failed("AlgorithmError: , exit code: 75"), NETWORK);
    assert_cause(of_failed("AlgorithmError: , exit code: 77"), ACCESS_DENIED);
    assert_cause(of_failed("AlgorithmError: , exit code: 127"), BAD_IMAGE);
    assert_cause(of_failed("AlgorithmError: , exit code: 137"), OOM);
    assert_true(cause_is_bare(STR("AlgorithmError: , exit code: 137"))); /* the log may say more */
    assert_cause(of_failed("AlgorithmError: , exit code: 139"), USER_CODE);
    assert_cause(of_failed("AlgorithmError: , exit code: 143"), STOPPED);
    assert_cause(of_failed("AlgorithmError: , exit code: 255"), UNKNOWN);
    assert_cause(of_failed("AlgorithmError: , exit code: 0"), UNKNOWN);
    assert_cause(of_failed("AlgorithmError: x, exit code: 99999999999999"), UNKNOWN);
}

static void test_cause__our_own_stop_is_no_failure(void **state)
{
    (void)state;
    struct str killed = STR("AlgorithmError: , exit code: 137");
    assert_cause(cause_of_job(JOB_END_FAILED, killed, true), STOPPED);
    assert_cause(cause_of_job(JOB_END_FAILED, killed, false), OOM);
    assert_cause(cause_of_job(JOB_END_STOPPED, STR(""), false), STOPPED);
    assert_cause(cause_of_job(JOB_END_STOPPED, STR("CapacityError"), true), STOPPED);
    assert_cause(cause_of_job(JOB_END_MAX_RUNTIME, STR(""), false), TIMEOUT);
    assert_cause(cause_of_job(JOB_END_MAX_RUNTIME, STR(""), true), STOPPED);
    assert_cause(cause_of_job(JOB_END_MAX_WAIT, STR(""), false), TIMEOUT);
    /* a stop does not hide why it failed before */
    assert_cause(cause_of_job(JOB_END_FAILED, STR("CapacityError: Unable to provision"), true),
                 CAPACITY);
}

static void test_cause__junk_stays_unknown(void **state)
{
    (void)state;
    assert_cause(of_failed(""), UNKNOWN);
    assert_cause(of_failed(NULL), UNKNOWN);
    assert_cause(of_failed("   \n\t "), UNKNOWN);
    assert_cause(of_failed("something happened"), UNKNOWN);
    assert_cause(of_failed("AlgorithmError:"), UNKNOWN);
    assert_cause(of_failed("AlgorithmError: :"), UNKNOWN);
    assert_cause(of_failed("exit code"), UNKNOWN);
    /* what only names a thing, when nothing says that it is in trouble */
    assert_cause(of_failed("socket pool of 8, dns cache on, tls on, 4 threads decompress"),
                 UNKNOWN);
    assert_cause(of_failed("nvme0n1 is scratch, ecc on, connection 3 of 8 serves"), UNKNOWN);
    assert_cause(of_failed("\xff\xfe\xfd \x80\x81"), UNKNOWN);
    assert_cause(of_failed("connection failed"), NETWORK);
    AUTO_FREE char *big = xmalloc(100001);
    memset(big, 'x', 100000);
    big[100000] = '\0';
    assert_cause(of_failed(big), UNKNOWN);
    /* beyond what is read */
    memcpy(big + 90000, "out of memory", 13);
    assert_cause(of_failed(big), UNKNOWN);
    assert_cause(cause_of_refusal(0, NULL, STR("")), UNKNOWN);
}

static void test_cause__refusals_by_code_and_status(void **state)
{
    (void)state;
    assert_cause(cause_of_refusal(400, "ResourceLimitExceeded", STR("")), QUOTA);
    assert_cause(cause_of_refusal(400, "ThrottlingException", STR("Rate exceeded")), THROTTLED);
    assert_cause(cause_of_refusal(400, "AccessDeniedException", STR("")), ACCESS_DENIED);
    assert_cause(cause_of_refusal(403, "ExpiredTokenException", STR("")), ACCESS_DENIED);
    assert_cause(cause_of_refusal(400, "ValidationException", STR("1 validation error")),
                 BAD_REQUEST);
    /* what is echoed does not count */
    assert_cause(cause_of_refusal(400, "ValidationException",
                                  STR("Value '{a=out of memory, b=Rate exceeded}' at "
                                      "'hyperParameters' failed to satisfy constraint: x")),
                 BAD_REQUEST);
    assert_cause(cause_of_refusal(500, "Whatever", STR("")), INTERNAL);
    assert_cause(cause_of_refusal(503, NULL, STR("")), INTERNAL);
    assert_cause(cause_of_refusal(429, "X", STR("")), THROTTLED);
    assert_cause(cause_of_refusal(418, "X", STR("")), BAD_REQUEST);
    assert_cause(cause_of_refusal(403, "X", STR("")), ACCESS_DENIED);
}

static void assert_same_signature(const char *a, const char *b)
{
    char x[SIGNATURE_MAX + 1];
    char y[SIGNATURE_MAX + 1];
    cause_signature(str_of(a), x);
    cause_signature(str_of(b), y);
    assert_string_equal(x, y);
}

static void test_cause__signature_folds_what_differs_between_parts(void **state)
{
    (void)state;
    assert_same_signature("part 17: cannot read s3://b/meta/part-00017.parquet, exit code: 65",
                          "part 9:  cannot read s3://b/meta/part-00009.parquet, exit code: 65");
    assert_same_signature("job drover-c1-dl-12-a1-0a1b2c3d failed",
                          "job drover-c1-dl-7-a2-ffee1234 failed");
    assert_same_signature("role arn:aws:iam::111122223333:role/a is wrong",
                          "role arn:aws:iam::444455556666:role/b is wrong");
    char s[SIGNATURE_MAX + 1];
    cause_signature(STR("no column 'url' in part 3"), s);
    assert_string_equal(s, "no column 'url' in part #");
    cause_signature(STR(""), s);
    assert_string_equal(s, "");
    cause_signature(STR(" \n "), s);
    assert_string_equal(s, "");
    char t[SIGNATURE_MAX + 1];
    cause_signature(STR("no column 'url'"), s);
    cause_signature(STR("no column 'caption'"), t);
    assert_string_not_equal(s, t);
}

static void test_cause__signature_is_bounded_and_keeps_characters_whole(void **state)
{
    (void)state;
    char s[SIGNATURE_MAX + 1];
    for (size_t lead = 0; lead < 4; lead++) {
        AUTO_BUF struct buf b = BUF_INIT(4096);
        for (size_t i = 0; i < lead; i++) {
            buf_add_char(&b, '.');
        }
        for (int i = 0; i < 200; i++) {
            buf_add_cstr(&b, "\xe2\x82\xac"); /* a euro sign */
        }
        cause_signature(buf_str(&b), s);
        assert_true(strlen(s) <= SIGNATURE_MAX);
        assert_true(strlen(s) > SIGNATURE_MAX - 4);
        assert_true(str_is_utf8(str_of(s)));
    }
    cause_signature(STR("a cut \xe2\x82"), s);
    assert_true(str_is_utf8(str_of(s)));
}

static void test_cause__quota_numbers_in_both_wordings(void **state)
{
    (void)state;
    struct quota_refusal q;
    assert_true(cause_parse_quota(
        STR("An error occurred (ResourceLimitExceeded) when calling the CreateTrainingJob "
            "operation: The account-level service limit 'ml.c5.18xlarge for training job usage' "
            "is 16 Instances, with current utilization of 14 Instances and a request delta of 4 "
            "Instances. Please contact AWS support"),
        &q));
    assert_string_equal(q.quota_name, "ml.c5.18xlarge for training job usage");
    assert_int_equal(q.limit, 16);
    assert_int_equal(q.in_use, 14);
    assert_int_equal(q.delta, 4);
    assert_true(cause_parse_quota(
        STR("The account-level service limit for training-job/ml.p2.xlarge is 0 Instances, with "
            "current utilization of 0 Instances\nand a request delta of 2 Instances."),
        &q));
    assert_string_equal(q.quota_name, "training-job/ml.p2.xlarge");
    assert_int_equal(q.limit, 0);
    assert_int_equal(q.delta, 2);
}

static void test_cause__quota_without_numbers_is_not_made_up(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "Rate exceeded",
        "The account-level service limit",
        "The account-level service limit '",
        "The account-level service limit '' is 4 Instances",
        "The account-level service limit 'x' is 1",
        "The account-level service limit 'x' is many Instances, with current utilization of 0 "
        "Instances and a request delta of 1",
        "The account-level service limit 'x' is 99999999999999999999 Instances, with current "
        "utilization of 0 Instances and a request delta of 1 Instances",
        "The account-level service limit 'ml.g5.2xlarge for endpoint usage' is 0 Instances, with "
        "current utilization of 0",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct quota_refusal q = {.limit = -7};
        assert_false(cause_parse_quota(str_of(texts[i]), &q));
        assert_int_equal(q.limit, -7);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cause__corpus_is_classified),
        cmocka_unit_test(test_cause__further_wordings),
        cmocka_unit_test(test_cause__names_numbers_and_what_was_raised_last),
        cmocka_unit_test(test_cause__what_stands_around_the_words_is_not_read),
        cmocka_unit_test(test_cause__a_chain_is_read_from_its_end),
        cmocka_unit_test(test_cause__words_count_where_they_stand),
        cmocka_unit_test(test_cause__a_status_says_that_the_service_was_reached),
        cmocka_unit_test(test_cause__a_traceback_cut_before_its_exception_tells_by_its_assert),
        cmocka_unit_test(test_cause__our_workers_words_stand_alone),
        cmocka_unit_test(test_cause__our_workers_word_wins),
        cmocka_unit_test(test_cause__exit_codes_speak_when_words_do_not),
        cmocka_unit_test(test_cause__our_own_stop_is_no_failure),
        cmocka_unit_test(test_cause__junk_stays_unknown),
        cmocka_unit_test(test_cause__refusals_by_code_and_status),
        cmocka_unit_test(test_cause__signature_folds_what_differs_between_parts),
        cmocka_unit_test(test_cause__signature_is_bounded_and_keeps_characters_whole),
        cmocka_unit_test(test_cause__quota_numbers_in_both_wordings),
        cmocka_unit_test(test_cause__quota_without_numbers_is_not_made_up),
    };
    return cmocka_run_group_tests_name("cause", tests, NULL, NULL);
}
