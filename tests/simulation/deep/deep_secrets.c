/* Secrets in what people and jobs say: values of an environment, of hyperparameters and of what
 * parts bring of any length, with quotes, %, line breaks and letters of other alphabets, those of
 * tags, and keys in the reasons of failed jobs. What must hold:
 * none of it is in what a viewer may see, which is every text that droverd writes beside the
 * campaign's file and the requests themselves: events, reasons, evidence, what is parked, its log.
 * Keys are masked where AWS answers (aws/), which is the simulation's part here, by the same
 * function. */
#include "common/log.h"
#include "common/secret_shape.h"
#include "core/spec/spec_parse.h"
#include "deep.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define LONGEST 480            /* that is taken */
#define LONGER  4000           /* and is refused */
#define MARK    "q7ZkCanaryXw" /* in each, again and again: also in what is cut out of it */
#define KEY     "hf_" MARK "aB3aB3aB3aB3aB3aB3aB3aB3"

static const char *const texts[] = {
    "SELECT coalesce(string_agg(left(detail::text, 300), ' '), '') FROM event WHERE detail::text "
    "~ ",
    "SELECT coalesce(string_agg(name || ': ' || reason, ' '), '') FROM attempt WHERE reason || "
    "coalesce(evidence::text, '') || arn ~ ",
    "SELECT coalesce(string_agg(left(message, 300), ' '), '') FROM task_failure WHERE message || "
    "signature ~ ",
    "SELECT coalesce(string_agg(left(reason, 300), ' '), '') FROM campaign_run WHERE reason ~ ",
    "SELECT coalesce(string_agg(left(reason, 300), ' '), '') FROM stage_run WHERE reason || "
    "wait_reason ~ ",
    "SELECT coalesce(string_agg(left(reason, 300), ' '), '') FROM parked WHERE reason ~ ",
    "SELECT coalesce(string_agg(left(reason, 300), ' '), '') FROM endpoint WHERE reason ~ ",
    "SELECT coalesce(string_agg(left(reason, 300), ' '), '') FROM filesystem WHERE reason ~ ",
    "SELECT coalesce(string_agg(left(problem, 300), ' '), '') FROM input_listing WHERE problem ~ ",
    "SELECT coalesce(string_agg(left(note, 300), ' '), '') FROM metric_source WHERE note ~ ",
};

static int log_fd = -1;

/* Double-quoted YAML of a value with the mark at least every few letters. one_line: SageMaker takes
 * no line break there. */
static void add_value(struct buf *b, int64_t most, bool one_line)
{
    static const char *const between_marks[] = {"\\\"", "%s%n", "\\n", "'", "ü€",     "$(x)",
                                                "\\\\", "<b>",  "\\t", " ", "{uri}x", "=="};
    struct rng *r = &deep->rng_secrets;
    int64_t n = most == LONGER ? most : between(r, (int64_t)strlen(MARK), most), at = 0;
    buf_add_cstr(b, "\"");
    while (at < n) {
        const char *sep = between_marks[rng_below(r, ARRAY_LEN(between_marks) - 2)];
        sep = one_line && sep[0] == '\\' && strchr("nt", sep[1]) != NULL ? " " : sep;
        buf_addf(b, "%s%s", MARK, at + (int64_t)strlen(MARK) < n ? sep : "");
        at += (int64_t)(strlen(MARK) + strlen(sep));
    }
    buf_add_cstr(b, "\"");
}

static void add_values(struct buf *b, const char *key, bool one_line)
{
    buf_addf(b, "    %s:\n", key);
    for (int64_t i = between(&deep->rng_secrets, 1, 3); i > 0; i--) {
        buf_addf(b, "      SETTING_%lld: ", (long long)i);
        add_value(b, rng_chance(&deep->rng_secrets, 0.5) ? LONGEST : 40, one_line);
        buf_add_cstr(b, "\n");
    }
}

void secrets_job(struct buf *b, bool vars)
{
    if (!deep->secrets) {
        return;
    }
    add_values(b, "environment", false);
    buf_add_cstr(b, vars ? "      OF_PART: \"{secret}\"\n" : "");
    add_values(b, "hyperparameters", true);
    buf_add_cstr(b, vars ? "      of_part: \"x{secret}\"\n" : "");
    buf_addf(b, "    tags: {owner: \"%s %s/%s\"}\n", MARK, MARK, MARK);
}

const char *secrets_vars_word(void)
{
    return deep->secrets ? ", vars: [secret]" : "";
}

void secrets_vars(struct buf *b)
{
    if (deep->secrets) { /* what is double-quoted YAML there is JSON, too */
        buf_add_cstr(b, "{\"secret\": ");
        add_value(b, rng_chance(&deep->rng_secrets, 0.5) ? LONGEST : 40, true);
        buf_add_cstr(b, "}");
    }
}

void secrets_in_reason(char *reason, size_t size)
{
    if (deep->secrets && reason[0] != '\0') {
        size_t n = strlen(reason);
        (void)snprintf(reason + n, size - n, " with token=" KEY " at https://me:" MARK "@host/");
        secret_mask(reason);
    }
}

/* A campaign's file with a key, or with a value that is too long: it is refused, and the answer,
 * which goes into a log and perhaps to others, does not repeat it. */
static void try_refused(bool key, bool environment)
{
    AUTO_BUF struct buf b = BUF_INIT(65536);
    struct faults *faults = xcalloc(1, sizeof *faults);
    struct arena a;
    struct spec *spec;
    const struct spec_defaults d = {
        .role = DEEP_ROLE, .worker_image = DEEP_IMAGE, .bucket = "s3://bbb"};
    buf_addf(&b,
             "version: 1\nname: c\nstages:\n  - name: s\n    image: \"" DEEP_IMAGE "\"\n    "
             "max_runtime: 1h\n    instance_type: ml.m5.large\n    %s: {NAME: ",
             environment ? "environment" : "hyperparameters");
    if (key) {
        buf_add_cstr(&b, "\"" KEY "\"");
    } else {
        add_value(&b, LONGER, false);
    }
    buf_add_cstr(&b, "}\n");
    arena_init(&a, SPEC_ARENA_BYTES);
    bool taken = spec_parse(buf_str(&b), &d, &a, &spec, faults);
    for (int i = 0; i < faults->n; i++) {
        taken = taken || strstr(faults->at[i].message, MARK) != NULL ||
                strstr(faults->at[i].hint, MARK) != NULL;
    }
    if (taken) {
        wrong("I25", "a campaign's file with %s is taken, or repeated: %s",
              key ? "a key" : "a long value", faults->n > 0 ? faults->at[0].message : "");
    }
    arena_done(&a);
    free(faults);
}

void secrets_start(void)
{
    log_fd = -1;
    for (int i = 0; i < 4 && deep->secrets; i++) {
        try_refused(i % 2 == 0, i < 2);
    }
    if (!deep->secrets || deep->tell) {
        return;
    }
    log_fd = memfd_create("log", MFD_CLOEXEC);
    if (log_fd >= 0 && dup2(log_fd, STDERR_FILENO) >= 0) {
        log_set_level(LOG_INFO);
    }
}

static void judge_log(void)
{
    off_t n = lseek(log_fd, 0, SEEK_END);
    if (n <= 0) {
        return;
    }
    char *p = mmap(NULL, (size_t)n, PROT_READ, MAP_PRIVATE, log_fd, 0);
    ASSERT(p != MAP_FAILED);
    const char *at = memmem(p, (size_t)n, MARK, strlen(MARK));
    if (at != NULL) {
        int64_t before = MIN(at - p, 150);
        wrong("I25", "droverd's log has a secret: %.*s", (int)MIN(300, p + n - at + before),
              at - before);
    }
    (void)munmap(p, (size_t)n);
}

void secrets_judge(void)
{
    for (size_t i = 0; i < ARRAY_LEN(texts) && deep->secrets; i++) {
        AUTO_RESULT PGresult *r = sql_rows("%s'%s'", texts[i], MARK);
        if (PQgetvalue(r, 0, 0)[0] != '\0') {
            wrong("I25", "a viewer may see a secret: %s", PQgetvalue(r, 0, 0));
        }
    }
    if (log_fd >= 0) {
        judge_log();
    }
}

void secrets_end(void)
{
    if (log_fd >= 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(null, STDERR_FILENO);
        (void)close(null);
        (void)close(log_fd);
        log_fd = -1;
        log_set_level(LOG_ERROR);
    }
}
