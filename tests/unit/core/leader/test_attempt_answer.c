/* Aim: each answer of SageMaker or of the output check becomes the right fact, and only what is
 * ours is believed. Method: a table of refusals, every word of a job's state, answers by hand. */
#include "core/leader/attempt_answer.h"
#include "leader_world.h"

#define BOOT_ANSWER (BOOT + 7)

static const struct aws_failure *failed(enum aws_outcome o, int status, const char *code,
                                        const char *message)
{
    static struct aws_failure f;
    f = (struct aws_failure){.outcome = o, .status = status};
    (void)snprintf(f.code, sizeof f.code, "%s", code);
    (void)snprintf(f.message, sizeof f.message, "%s", message);
    return &f;
}

static void test_attempt_answer__every_refusal_of_a_create(void **state)
{
    (void)state;
    static const struct {
        enum aws_outcome outcome;
        int status;
        const char *code;
        enum fact_kind kind;
        enum cause cause;
    } cases[] = {
        {AWS_UNKNOWN, 500, "InternalFailure", FACT_CREATE_UNKNOWN, CAUSE_NETWORK},
        {AWS_OK, 200, "", FACT_CREATE_UNKNOWN, CAUSE_NETWORK},
        {AWS_UNSENT, 0, "", FACT_CREATE_UNSENT, CAUSE_NETWORK},
        {AWS_THROTTLED, 400, "ThrottlingException", FACT_CREATE_REFUSED, CAUSE_THROTTLED},
        {AWS_CREDENTIALS, 400, "ExpiredToken", FACT_CREATE_REFUSED, CAUSE_NETWORK},
        {AWS_REFUSED, 403, "SignatureDoesNotMatch", FACT_CREATE_REFUSED, CAUSE_NETWORK},
        {AWS_REFUSED, 403, "InvalidSignatureException", FACT_CREATE_REFUSED, CAUSE_NETWORK},
        {AWS_REFUSED, 403, "IncompleteSignature", FACT_CREATE_REFUSED, CAUSE_NETWORK},
        {AWS_REFUSED, 403, "MissingAuthenticationToken", FACT_CREATE_REFUSED, CAUSE_NETWORK},
        {AWS_REFUSED, 403, "AccessDeniedException", FACT_CREATE_REFUSED, CAUSE_ACCESS_DENIED},
        {AWS_REFUSED, 400, "ValidationException", FACT_CREATE_REFUSED, CAUSE_BAD_REQUEST},
        {AWS_REFUSED, 400, "ResourceInUse", FACT_CREATE_IN_USE, CAUSE_NONE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        struct create_notes notes;
        leader_world_init(&w);
        struct live_attempt *a = leader_world_attempt(&w, 1, 1);
        const struct aws_failure *f =
            failed(cases[i].outcome, cases[i].status, cases[i].code, "its words");
        struct fact got = leader_create_answer(&w.s, a, NULL, f, WALL, BOOT_ANSWER, &notes);
        assert_int_equal(got.kind, cases[i].kind);
        assert_int_equal(got.cause, cases[i].cause);
        assert_int_equal(got.at_us, BOOT_ANSWER);
        assert_non_null(strstr(a->reason, "its words"));
        assert_non_null(strstr(a->reason, cases[i].code));
        assert_false(notes.quota_refused);
        assert_int_equal(notes.silent,
                         cases[i].outcome == AWS_UNKNOWN || cases[i].outcome == AWS_UNSENT);
        leader_world_done(&w);
    }
}

static void test_attempt_answer__a_quota_refusal_teaches(void **state)
{
    (void)state;
    struct leader_world w;
    struct create_notes notes;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    struct live_slots *slots = leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND);
    slots->s.quota = 4;
    const struct aws_failure *f = failed(
        AWS_REFUSED, 400, "ResourceLimitExceeded",
        "The account-level service limit 'ml.a.large for training job usage' is 4 Instances, with "
        "current utilization of 3 Instances and a request delta of 2 Instances.");
    struct fact got = leader_create_answer(&w.s, a, NULL, f, WALL, BOOT_ANSWER, &notes);
    assert_int_equal(got.kind, FACT_CREATE_REFUSED);
    assert_int_equal(got.cause, CAUSE_QUOTA);
    assert_true(notes.quota_refused);
    assert_int_equal(notes.refusal.said.limit, 4);
    assert_true(slots->s.foreign > 0); /* others use what is not ours */
    leader_world_done(&w);
}

static void test_attempt_answer__a_taken_create(void **state)
{
    (void)state;
    struct leader_world w;
    struct create_notes notes;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    a->taken = leader_world_pool(&w, 5, POOL_AVAILABLE, NULL);
    a->taken->look_now = false;
    (void)snprintf(a->reason, sizeof a->reason, "an older refusal");
    struct fact got = leader_create_answer(&w.s, a, "arn:x", NULL, WALL, BOOT_ANSWER, &notes);
    assert_int_equal(got.kind, FACT_CREATE_OK);
    assert_string_equal(a->arn, "arn:x");
    assert_string_equal(a->reason, "");
    assert_true(a->taken->look_now);
    leader_world_done(&w);
}

static void test_attempt_answer__words_of_a_job(void **state)
{
    (void)state;
    static const struct {
        const char *status, *secondary;
        enum job_status want;
        enum job_phase phase;
    } cases[] = {
        {"InProgress", "Pending", JOB_IN_PROGRESS, PHASE_PENDING},
        {"InProgress", "Starting", JOB_IN_PROGRESS, PHASE_STARTING},
        {"InProgress", "LaunchingMLInstances", JOB_IN_PROGRESS, PHASE_STARTING},
        {"InProgress", "PreparingTrainingStack", JOB_IN_PROGRESS, PHASE_STARTING},
        {"InProgress", "Downloading", JOB_IN_PROGRESS, PHASE_RUNNING},
        {"InProgress", "DownloadingTrainingImage", JOB_IN_PROGRESS, PHASE_RUNNING},
        {"InProgress", "Training", JOB_IN_PROGRESS, PHASE_RUNNING},
        {"InProgress", "Restarting", JOB_IN_PROGRESS, PHASE_RUNNING},
        {"InProgress", "Updating", JOB_IN_PROGRESS, PHASE_RUNNING},
        {"InProgress", "Uploading", JOB_IN_PROGRESS, PHASE_UPLOADING},
        {"InProgress", "Interrupted", JOB_IN_PROGRESS, PHASE_INTERRUPTED},
        {"Stopping", "Stopping", JOB_STOPPING, PHASE_STOPPING},
        {"Stopped", "MaxRuntimeExceeded", JOB_STOPPED, PHASE_MAX_RUNTIME},
        {"Stopped", "MaxWaitTimeExceeded", JOB_STOPPED, PHASE_MAX_WAIT},
        {"Stopped", "Stopped", JOB_STOPPED, PHASE_ENDED},
        {"Completed", "Completed", JOB_COMPLETED, PHASE_ENDED},
        {"Failed", "Failed", JOB_FAILED, PHASE_ENDED},
        {"Dreaming", "Dreaming", JOB_STATUS_UNKNOWN, PHASE_OTHER},
        {"", "", JOB_STATUS_UNKNOWN, PHASE_OTHER},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job_seen seen = leader_job_seen(cases[i].status, cases[i].secondary, 42);
        assert_int_equal(seen.status, cases[i].want);
        assert_int_equal(seen.phase, cases[i].phase);
        assert_int_equal(seen.modified, 42);
        assert_false(seen.ours);
    }
}

static struct job_description described(const char *status, const char *secondary,
                                        const char *reason)
{
    struct job_description job = {.created = 11,
                                  .started = 12,
                                  .ended = 13,
                                  .modified = 14,
                                  .billable_s = 15,
                                  .pool = {.status = WARM_POOL_AVAILABLE}};
    (void)snprintf(job.status, sizeof job.status, "%s", status);
    (void)snprintf(job.secondary, sizeof job.secondary, "%s", secondary);
    (void)snprintf(job.failure_reason, sizeof job.failure_reason, "%s", reason);
    (void)snprintf(job.request_hash, sizeof job.request_hash, "ours");
    (void)snprintf(job.arn, sizeof job.arn, "arn:job");
    (void)snprintf(job.artifacts, sizeof job.artifacts, "s3://b/model.tar.gz");
    return job;
}

static struct live_attempt *ours(struct leader_world *w)
{
    leader_world_init(w);
    struct live_attempt *a = leader_world_attempt(w, 1, 1);
    (void)snprintf(a->row.identity_hash, sizeof a->row.identity_hash, "ours");
    return a;
}

static void test_attempt_answer__only_our_own_job_is_believed(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *a = ours(&w);
    struct job_description job = described("InProgress", "Training", "");
    struct fact f = leader_describe_answer(a, &job, false, false, WALL, BOOT_ANSWER);
    assert_int_equal(f.kind, FACT_DESCRIBED);
    assert_true(f.job.ours);
    assert_string_equal(a->arn, "arn:job");
    assert_string_equal(a->artifacts, "s3://b/model.tar.gz");
    assert_int_equal(a->created_us, 11);
    assert_int_equal(a->row.started_us, 12);
    assert_int_equal(a->row.ended_us, 13);
    assert_int_equal(a->billable_s, 15);
    assert_int_equal(a->pool_seen.status, WARM_POOL_AVAILABLE);
    job.ended = 0; /* not yet, or not told: the latest it can have been counts */
    (void)leader_describe_answer(a, &job, false, false, WALL, BOOT_ANSWER);
    assert_int_equal(a->row.ended_us, 0);
    job.modified = 17;
    (void)snprintf(job.status, sizeof job.status, "Completed");
    (void)leader_describe_answer(a, &job, false, false, WALL, BOOT_ANSWER);
    assert_int_equal(a->row.ended_us, 17);
    (void)snprintf(job.request_hash, sizeof job.request_hash, "another's");
    job.billable_s = 99;
    f = leader_describe_answer(a, &job, false, false, WALL, BOOT_ANSWER);
    assert_false(f.job.ours);
    assert_int_equal(a->billable_s, 15);
    leader_world_done(&w);
}

/* So often in a row a Describe came without its Environment: asked again, then the name is
 * believed. Returns what the last was told. */
static struct fact untold_until_believed(struct live_attempt *a, const struct job_description *job)
{
    for (int i = 1; i < 6; i++) {
        assert_false(leader_ours_by_name(a, job));
        struct fact f = leader_describe_answer(a, job, false, false, WALL, BOOT_ANSWER);
        assert_int_equal(f.kind, FACT_DESCRIBE_FAILED);
        assert_int_equal(f.at_us, BOOT_ANSWER);
        assert_true(f.seen);
        assert_non_null(strstr(a->reason, "asked again"));
    }
    assert_int_equal(a->billable_s, 0);
    assert_true(leader_ours_by_name(a, job));
    return leader_describe_answer(a, job, false, false, WALL, BOOT_ANSWER);
}

/* No other installation can have made its name, and an Environment that is left out says nothing:
 * whether its ARN is known, its row says that it exists, or the reply of its Create was lost. */
static void test_attempt_answer__a_job_of_our_name_is_never_let_go(void **state)
{
    (void)state;
    for (enum attempt_state s = ATTEMPT_UNKNOWN; s <= ATTEMPT_STOPPING; s++) {
        for (int known = 0; known < 2; known++) {
            struct leader_world w;
            struct live_attempt *a = ours(&w);
            struct job_description job = described("InProgress", "Training", "");
            a->p.state = s;
            (void)snprintf(a->arn, sizeof a->arn, "%s", known ? "arn:job" : "");
            job.request_hash[0] = '\0';
            job.untold = true;
            struct fact f = untold_until_believed(a, &job);
            assert_true(f.kind == FACT_DESCRIBED && f.job.ours && !f.seen);
            assert_int_equal(a->billable_s, 15);
            f = leader_describe_answer(a, &job, false, false, WALL, BOOT_ANSWER);
            assert_true(f.kind == FACT_DESCRIBED && f.job.ours); /* not asked all over again */
            (void)snprintf(job.request_hash, sizeof job.request_hash, "ours");
            job.untold = false;
            f = leader_describe_answer(a, &job, false, false, WALL, BOOT_ANSWER);
            assert_true(f.kind == FACT_DESCRIBED && f.job.ours);
            job.request_hash[0] = '\0';
            job.untold = true;
            a->billable_s = 0;
            (void)untold_until_believed(a, &job); /* it said it in between */
            leader_world_done(&w);
        }
    }
}

static void test_attempt_answer__what_says_another_owner_is_a_conflict(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *a = ours(&w);
    struct job_description job = described("InProgress", "Training", "");
    a->p.state = ATTEMPT_UNKNOWN;
    job.request_hash[0] = '\0'; /* an Environment came, and it is not one of ours */
    struct fact f = leader_describe_answer(a, &job, false, false, WALL, BOOT_ANSWER);
    assert_true(f.kind == FACT_DESCRIBED && !f.job.ours);
    for (a->p.state = ATTEMPT_SUBMITTED; a->p.state <= ATTEMPT_STOPPING; a->p.state++) {
        a->untold = 0; /* taken over: its ARN is in its row only */
        f = leader_describe_answer(a, &job, false, false, WALL, BOOT_ANSWER);
        assert_int_equal(f.kind, FACT_DESCRIBE_FAILED);
    }
    a->untold = 0;
    a->p.state = ATTEMPT_UNKNOWN;
    (void)snprintf(a->arn, sizeof a->arn, "arn:job"); /* our Create made it all the same */
    f = leader_describe_answer(a, &job, false, false, WALL, BOOT_ANSWER);
    assert_int_equal(f.kind, FACT_DESCRIBE_FAILED);
    (void)snprintf(job.request_hash, sizeof job.request_hash, "another's");
    f = leader_describe_answer(a, &job, false, false, WALL, BOOT_ANSWER);
    assert_true(f.kind == FACT_DESCRIBED && !f.job.ours);
    leader_world_done(&w);
}

static void test_attempt_answer__nothing_there_and_no_answer(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *a = ours(&w);
    a->describe_sent_us = BOOT - 5;
    struct fact f = leader_describe_answer(a, NULL, true, false, WALL, BOOT_ANSWER);
    assert_int_equal(f.kind, FACT_NOT_FOUND);
    assert_int_equal(f.at_us, BOOT - 5); /* it may have come into being since */
    f = leader_describe_answer(a, NULL, true, true, WALL, BOOT_ANSWER);
    assert_int_equal(f.kind, FACT_DESCRIBE_FAILED);
    assert_int_equal(leader_stop_answer(false, false, 1).kind, FACT_STOP_OK);
    assert_int_equal(leader_stop_answer(false, true, 1).kind, FACT_STOP_FAILED);
    assert_int_equal(leader_stop_answer(true, false, 1).kind, FACT_STOP_FAILED);
    leader_world_done(&w);
}

#define LIFE_S (3600 + 120 + 900) /* run time, grace, upload */

/* Asked again and again AWS does not know it: what is concluded a quarter of an hour later. */
static struct fact unfound(struct live_attempt *a, usec_t now_us)
{
    a->describe_sent_us = BOOT;
    a->unfound_us = 0;
    assert_int_equal(leader_describe_answer(a, NULL, true, false, now_us, BOOT).kind,
                     FACT_NOT_FOUND);
    a->describe_sent_us = BOOT + 900 * SEC - 5;
    return leader_describe_answer(a, NULL, true, false, now_us, BOOT + 900 * SEC);
}

static void test_attempt_answer__a_job_is_gone_after_its_last_possible_end(void **state)
{
    (void)state;
    static const struct {
        enum market market;
        usec_t created, started, from;
        int64_t life_s;
    } rows[] = {
        {MARKET_ON_DEMAND, 0, 0, WALL - 1000 * SEC, LIFE_S}, /* as intended */
        {MARKET_ON_DEMAND, WALL, 0, WALL, LIFE_S},
        {MARKET_ON_DEMAND, WALL, WALL + SEC, WALL + SEC, LIFE_S},
        {MARKET_SPOT, WALL, WALL + SEC, WALL + SEC, LIFE_S + 3600}, /* may wait as well */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct leader_world w;
        struct live_attempt *a = ours(&w);
        a->row.market = rows[i].market;
        a->created_us = rows[i].created;
        a->row.started_us = rows[i].started;
        a->p.state = ATTEMPT_RUNNING;
        usec_t end = rows[i].from + rows[i].life_s * SEC;
        assert_int_equal(unfound(a, end).kind, FACT_NOT_FOUND);
        assert_int_equal(a->row.started_us, rows[i].started);
        assert_string_equal(a->reason, "");
        struct fact f = unfound(a, end + 1);
        assert_int_equal(f.kind, FACT_GONE);
        assert_int_equal(f.at_us, BOOT + 900 * SEC - 5);
        assert_int_equal(a->row.started_us, rows[i].from);
        assert_int_equal(a->row.ended_us, rows[i].from + LIFE_S * SEC); /* it pays no waiting */
        assert_int_equal(a->billable_s, 0);
        assert_non_null(strstr(a->reason, "deleted at AWS"));
        leader_world_done(&w);
    }
}

static void test_attempt_answer__what_finds_it_begins_the_absence_anew(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *a = ours(&w);
    struct job_description job = described("InProgress", "Training", "");
    usec_t late = WALL + 2 * LIFE_S * SEC;
    a->p.state = ATTEMPT_RUNNING;
    a->describe_sent_us = BOOT;
    (void)leader_describe_answer(a, NULL, true, false, late, BOOT);
    (void)leader_describe_answer(a, &job, false, false, late, BOOT + 800 * SEC);
    job.request_hash[0] = '\0'; /* it proves nothing, but it is there */
    job.untold = true;
    assert_int_equal(leader_describe_answer(a, NULL, true, false, late, BOOT + 900 * SEC).kind,
                     FACT_NOT_FOUND);
    (void)leader_describe_answer(a, &job, false, false, late, BOOT + 1000 * SEC);
    assert_int_equal(leader_describe_answer(a, NULL, true, false, late, BOOT + 1800 * SEC).kind,
                     FACT_NOT_FOUND);
    (void)leader_describe_answer(a, NULL, true, true, late, BOOT + 2000 * SEC); /* says nothing */
    assert_int_equal(leader_describe_answer(a, NULL, true, false, late, BOOT + 2700 * SEC).kind,
                     FACT_GONE);
    leader_world_done(&w);
}

/* One of unknown outcome may have been created as late as its last signature is good for. */
static void test_attempt_answer__an_unknown_one_is_gone_only_if_it_was_seen(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *a = ours(&w);
    a->p.state = ATTEMPT_UNKNOWN;
    a->p.void_after_us = BOOT - LIFE_S * SEC;
    assert_int_equal(unfound(a, WALL + 9 * LIFE_S * SEC).kind, FACT_NOT_FOUND);
    assert_int_equal(a->row.started_us, 0);
    a->p.was_there = true;
    a->p.void_after_us = BOOT - 10 * SEC;
    assert_int_equal(unfound(a, WALL + 9 * LIFE_S * SEC).kind, FACT_NOT_FOUND);
    a->p.void_after_us = BOOT - LIFE_S * SEC;
    assert_int_equal(unfound(a, WALL + 9 * LIFE_S * SEC).kind, FACT_GONE);
    leader_world_done(&w);
}

static void test_attempt_answer__why_a_job_ended(void **state)
{
    (void)state;
    static const struct {
        const char *status, *secondary, *reason;
        bool by_us;
        enum cause hung, want;
        const char *text;
    } cases[] = {
        {"InProgress", "Training", "", false, CAUSE_NONE, CAUSE_NONE, ""},
        {"Completed", "Completed", "", false, CAUSE_NONE, CAUSE_NONE, ""},
        {"Failed", "Failed", "AlgorithmError: disk_full: no space, exit code: 1", false, CAUSE_NONE,
         CAUSE_DISK_FULL, "no space"},
        {"Stopped", "MaxRuntimeExceeded", "", false, CAUSE_NONE, CAUSE_TIMEOUT,
         "ran longer than 3600 s"},
        {"Stopped", "Stopped", "", true, CAUSE_NONE, CAUSE_STOPPED, "stopped by drover"},
        {"Stopped", "Stopped", "", false, CAUSE_NONE, CAUSE_STOPPED, "stopped by somebody else"},
        {"Stopped", "Stopped", "", true, CAUSE_TIMEOUT, CAUSE_STOPPED, "it made no progress"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        struct live_attempt *a = ours(&w);
        struct job_description job =
            described(cases[i].status, cases[i].secondary, cases[i].reason);
        a->stopped_by_us = cases[i].by_us;
        a->row.stop_cause = cases[i].hung;
        struct fact f = leader_describe_answer(a, &job, false, false, WALL, BOOT_ANSWER);
        assert_int_equal(f.cause, cases[i].want);
        assert_non_null(strstr(a->reason, cases[i].text));
        leader_world_done(&w);
    }
    struct leader_world w;
    struct live_attempt *a = ours(&w);
    struct job_description job = described("Stopped", "MaxWaitTimeExceeded", "");
    assert_int_equal(leader_describe_answer(a, &job, false, false, WALL, 1).cause,
                     cause_of_job(JOB_END_MAX_WAIT, STR(""), false));
    leader_world_done(&w);
}

static void test_attempt_answer__a_reason_that_tells_nothing_is_bare(void **state)
{
    (void)state;
    static const struct {
        const char *status, *reason;
        bool by_us, bare;
    } cases[] = {
        {"Failed", "AlgorithmError: , exit code: 1", false, true},
        {"Failed", "AlgorithmError: , exit code: 137", false, true},
        {"Failed", "something new", false, true},
        {"Failed", "", false, true},
        {"Failed", "AlgorithmError: , exit code: 1", true, false},
        {"Failed", "AlgorithmError: disk_full: no space, exit code: 1", false, false},
        {"Failed", "AlgorithmError: ValueError: bad, exit code: 1", false, false},
        {"Failed", "InternalServerError: We encountered an internal error", false, false},
        {"Stopped", "AlgorithmError: , exit code: 1", false, false},
        {"Completed", "", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        struct live_attempt *a = ours(&w);
        struct job_description job = described(cases[i].status, cases[i].status, cases[i].reason);
        a->stopped_by_us = cases[i].by_us;
        assert_int_equal(leader_describe_answer(a, &job, false, false, WALL, BOOT_ANSWER).bare,
                         cases[i].bare);
        job.started = 0; /* what never ran has no log */
        assert_false(leader_describe_answer(a, &job, false, false, WALL, BOOT_ANSWER).bare);
        leader_world_done(&w);
    }
}

static void test_attempt_answer__what_a_log_said(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *a = ours(&w);
    (void)snprintf(a->reason, sizeof a->reason, "AlgorithmError: , exit code: 1");
    struct fact f = leader_log_answer(a, NULL, BOOT_ANSWER);
    assert_int_equal(f.kind, FACT_VERIFIED);
    assert_int_equal(f.cause, CAUSE_UNKNOWN);
    assert_null(a->evidence);
    const struct log_tail_evidence nothing = {.cause = CAUSE_UNKNOWN};
    assert_int_equal(leader_log_answer(a, &nothing, BOOT_ANSWER).cause, CAUSE_UNKNOWN);
    assert_string_equal(a->reason, "AlgorithmError: , exit code: 1");
    const struct log_tail_evidence told = {
        .cause = CAUSE_OOM, .host = "algo-2", .text = "CUDA \"out\" of memory"};
    assert_int_equal(leader_log_answer(a, &told, BOOT_ANSWER).cause, CAUSE_OOM);
    assert_string_equal(a->reason,
                        "CUDA \"out\" of memory (log of algo-2; AlgorithmError: , exit code: 1)");
    assert_string_equal(
        a->evidence,
        "{\"host\":\"algo-2\",\"text\":\"CUDA \\\"out\\\" of memory\",\"cause\":\"oom\"}");
    leader_world_done(&w);
}

static void test_attempt_answer__a_checked_output(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *a = ours(&w);
    struct output_verdict v = {.checked = true,
                               .good = true,
                               .rows_in = 5,
                               .successes = 3,
                               .failed_to_download = 1,
                               .failed_to_resize = 1,
                               .bytes = 77,
                               .manifest = xstrdup("{}")};
    struct fact f = leader_verify_answer(a, &v, BOOT_ANSWER);
    assert_int_equal(f.kind, FACT_VERIFIED);
    assert_int_equal(f.cause, CAUSE_NONE);
    assert_string_equal(a->manifest, "{}");
    assert_null(v.manifest);
    assert_int_equal(a->rows_in + a->successes + a->bytes, 85);
    assert_int_equal(a->failed_to_download + a->failed_to_resize, 2);
    v = (struct output_verdict){.checked = true, .cause = CAUSE_SHORT_OUTPUT, .text = "rows lack"};
    f = leader_verify_answer(a, &v, BOOT_ANSWER);
    assert_int_equal(f.cause, CAUSE_SHORT_OUTPUT);
    assert_null(a->manifest);
    assert_string_equal(a->reason, "rows lack");
    v = (struct output_verdict){
        .checked = false, .good = true, .manifest = xstrdup("{}"), .text = "503 SlowDown"};
    f = leader_verify_answer(a, &v, BOOT_ANSWER);
    assert_int_equal(f.kind, FACT_VERIFY_FAILED); /* unseen is never good */
    assert_null(a->manifest);
    assert_string_equal(a->reason, "503 SlowDown"); /* an alert tells it */
    v = (struct output_verdict){.checked = true, .good = true, .text = "3 objects, 3 expected"};
    (void)leader_verify_answer(a, &v, BOOT_ANSWER);
    assert_string_equal(a->reason, ""); /* the next look has mended it */
    leader_world_done(&w);
}

static void test_attempt_answer__a_log_that_cannot_be_read(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    struct fact f = leader_log_unread(a, failed(AWS_REFUSED, 400, "AccessDenied", ""), BOOT_ANSWER);
    assert_int_equal(f.kind, FACT_VERIFIED); /* waiting does not help */
    assert_int_equal(f.cause, CAUSE_UNKNOWN);
    for (int o = AWS_THROTTLED; o <= AWS_UNSENT; o++) {
        if (o != AWS_REFUSED) {
            f = leader_log_unread(a, failed((enum aws_outcome)o, 500, "", ""), BOOT_ANSWER);
            assert_int_equal(f.kind, FACT_VERIFY_FAILED);
            assert_int_equal(f.at_us, BOOT_ANSWER);
        }
    }
    leader_world_done(&w);
}

static void test_attempt_answer__an_output_that_nobody_knows(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    struct fact f = leader_verify_unseen(a, BOOT_ANSWER);
    assert_true(f.kind == FACT_VERIFIED && f.at_us == BOOT_ANSWER);
    assert_int_equal(f.cause, CAUSE_UNKNOWN);
    assert_string_equal(a->reason, "its output was not looked at");
    (void)snprintf(a->reason, sizeof a->reason, "503 SlowDown");
    (void)leader_verify_unseen(a, BOOT_ANSWER);
    assert_string_equal(a->reason, "its output was not looked at: 503 SlowDown");
    leader_world_done(&w);
}

/* Its end is in its row, the place of its output is not. */
static void test_attempt_answer__where_the_output_of_an_ended_job_is(void **state)
{
    (void)state;
    struct leader_world w;
    struct fact f;
    struct live_attempt *a = ours(&w);
    a->row.ended_us = WALL;
    struct job_description job = {.status = "InProgress"}; /* of before its end */
    assert_false(leader_place_answer(a, &job, false, false, WALL, BOOT, &f));
    assert_int_equal(f.kind, FACT_VERIFY_FAILED);
    job = (struct job_description){
        .status = "Completed", .artifacts = "s3://out/m", .request_hash = "another"};
    assert_false(leader_place_answer(a, &job, false, false, WALL, BOOT, &f));
    assert_false(leader_place_answer(a, NULL, false, true, WALL, BOOT, &f));
    assert_false(leader_place_answer(a, NULL, true, false, WALL + 1, BOOT, &f)); /* behind? */
    assert_int_equal(f.kind, FACT_VERIFY_FAILED);
    (void)snprintf(job.request_hash, sizeof job.request_hash, "%s", a->row.identity_hash);
    (void)snprintf(job.rules, sizeof job.rules, "[1]");
    assert_true(leader_place_answer(a, &job, false, false, WALL, BOOT, &f));
    assert_string_equal(a->rules, "[1]"); /* they went on since its end */
    assert_true(a->placed && strcmp(a->artifacts, "s3://out/m") == 0 && a->unfound_us == 0);
    a->unfound_us = BOOT;
    (void)leader_place_answer(a, NULL, true, false, WALL + 1, BOOT + 901 * SEC, &f);
    assert_int_equal(f.kind, FACT_VERIFIED); /* deleted at AWS */
    assert_string_equal(a->reason, "its output was not looked at");
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attempt_answer__every_refusal_of_a_create),
        cmocka_unit_test(test_attempt_answer__a_quota_refusal_teaches),
        cmocka_unit_test(test_attempt_answer__a_taken_create),
        cmocka_unit_test(test_attempt_answer__words_of_a_job),
        cmocka_unit_test(test_attempt_answer__only_our_own_job_is_believed),
        cmocka_unit_test(test_attempt_answer__a_job_of_our_name_is_never_let_go),
        cmocka_unit_test(test_attempt_answer__what_says_another_owner_is_a_conflict),
        cmocka_unit_test(test_attempt_answer__nothing_there_and_no_answer),
        cmocka_unit_test(test_attempt_answer__a_job_is_gone_after_its_last_possible_end),
        cmocka_unit_test(test_attempt_answer__what_finds_it_begins_the_absence_anew),
        cmocka_unit_test(test_attempt_answer__an_unknown_one_is_gone_only_if_it_was_seen),
        cmocka_unit_test(test_attempt_answer__why_a_job_ended),
        cmocka_unit_test(test_attempt_answer__a_reason_that_tells_nothing_is_bare),
        cmocka_unit_test(test_attempt_answer__what_a_log_said),
        cmocka_unit_test(test_attempt_answer__a_checked_output),
        cmocka_unit_test(test_attempt_answer__a_log_that_cannot_be_read),
        cmocka_unit_test(test_attempt_answer__an_output_that_nobody_knows),
        cmocka_unit_test(test_attempt_answer__where_the_output_of_an_ended_job_is),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
