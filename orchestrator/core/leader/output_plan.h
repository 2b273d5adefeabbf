/* Whether a task's output is there and whole: what is looked at in S3 for a stage's verify and for
 * its done_if, in which order, what each answer means, and the judgement of what was found. The
 * shell makes the calls: the manifest first (VERIFY_MANIFEST), then the listing, then how many rows
 * the part has by its own footer, then the stats (VERIFY_IMG2DATASET). What S3 refuses for good
 * ends the check; it is never a short output, which would be made and paid once more. Pure. */
#pragma once
#include "common/aws_outcome.h"
#include "core/failure/verify.h"
#include "core/spec/spec_expand.h"
#include "leader_state.h"
#include "output_verdict.h"

#define OUTPUT_URI_MAX 1100

struct output_plan { /* value */
    enum spec_verify kind;
    bool told;                  /* there is a place to look at, and it is known */
    char place[OUTPUT_URI_MAX]; /* S3 URI of the key, or of the folder, which ends in '/' */
    int64_t count;              /* VERIFY_COUNT: at least this many objects */
    char task_id[24];           /* whose manifest it must be; "" any task's */
    char input[OUTPUT_URI_MAX]; /* the part, when its rows are counted by its own footer; else "" */
    int64_t input_size;
};
/* The output of an attempt. err says why the place cannot be told. */
void output_plan_attempt(const struct live_attempt *a, struct output_plan *ret, struct err *err);
/* What done_if names for a task that has not run. */
void output_plan_done_if(const struct live_campaign *lc, const struct live_stage *ls,
                         const struct task_input *t, struct output_plan *ret, struct err *err);
/* The folder that the attempt's worker writes to, as S3 URI with '/' at its end. False: its stage
 * names none. */
bool output_plan_folder(const struct live_attempt *a, char ret[static OUTPUT_URI_MAX],
                        struct err *err) MUST_CHECK;

enum output_answer {
    OUTPUT_READ,
    OUTPUT_ABSENT, /* there is no such object */
    /* Waiting will not mend these. */
    OUTPUT_DENIED,
    OUTPUT_REFUSED,   /* any other refusal of S3 */
    OUTPUT_TOO_LARGE, /* more keys or bytes than are read */
    OUTPUT_AGAIN      /* nothing is known: ask again */
};
enum output_answer output_answer(enum aws_outcome outcome, int status, enum err_code why);

/* What is asked of S3, or how the check ends. */
enum output_step {
    OUTPUT_GET_MANIFEST,
    OUTPUT_COUNT, /* the next page, as long as output_next_page; then OUTPUT_JUDGE */
    OUTPUT_LIST,
    OUTPUT_GET_TAIL,   /* of the part: how long its footer is */
    OUTPUT_GET_FOOTER, /* of the part: how many rows it has */
    OUTPUT_GET_STATS,  /* the next one, as long as there are some; then OUTPUT_JUDGE */
    OUTPUT_HEAD,
    OUTPUT_JUDGE,
    OUTPUT_END_KEY, /* there or not */
    OUTPUT_END_NO_MANIFEST,
    OUTPUT_END_DENIED,
    OUTPUT_END_REFUSED,
    OUTPUT_END_TOO_LARGE,
    OUTPUT_END_UNCHECKED, /* asked again later */
};
/* Of a plan that is told. */
enum output_step output_first(const struct output_plan *p);
/* What comes after `done` was answered so. A tail that is no Parquet's counts as OUTPUT_ABSENT:
 * then only what the output says of itself is checked. */
enum output_step output_next(const struct output_plan *p, enum output_step done,
                             enum output_answer answer);
/* True when `done` is asked once more before that, after *ret_pause_us: one of many objects or
 * pages that was not given does not end the check. tries: of it, this one included. */
bool output_again(enum output_step done, enum output_answer answer, int tries, struct rng *rng,
                  int64_t *ret_pause_us);

struct output_seen { /* borrowed */
    struct str manifest;
    const struct verify_object *objects; /* below the folder, keys relative to it */
    size_t objects_n;
    struct verify_sums stats; /* of the objects that output_is_stats names */
    int64_t rows_in;          /* of the part; -1: not known */
    int64_t counted;          /* VERIFY_COUNT: objects on the pages so far */
    bool counted_all;
};
/* True while one more page is counted: there are not enough yet. */
bool output_next_page(const struct output_plan *p, const struct output_seen *seen);
/* True for the key of a shard's _stats.json. */
bool output_is_stats(const char *key);
/* The next object from *cursor on whose text is wanted. False: no more, or one cannot be read. */
bool output_next_stats(const struct output_seen *seen, size_t *cursor, const char **ret_key);
/* Each judges what was looked at; ret->manifest is NULL. */
void output_judge(const struct output_plan *p, const struct output_seen *seen,
                  struct output_verdict *ret);
/* end: OUTPUT_END_DENIED, _REFUSED or _TOO_LARGE. */
void output_judge_refused(enum output_step end, const char *message, struct output_verdict *ret);
void output_judge_no_manifest(struct output_verdict *ret);
void output_judge_key(bool there, struct output_verdict *ret); /* VERIFY_EXISTS, _ARTIFACTS */
/* Nothing needs to be looked at: VERIFY_NONE, or a place that cannot be told. */
bool output_judge_unseen(const struct output_plan *p, struct output_verdict *ret);
