/* What CloudWatch Logs and SageMaker tell of the metrics of a job: a line each few minutes with a
 * loss and an accuracy, and after the last one those that count. A job that was interrupted goes on
 * in another stream. Some jobs print none. */
#include "deep.h"
#include <stdio.h>

#define LINE_US (2 * MINUTE)
#define PAGE    3 /* lines */

enum log_what { STREAM, LINES, FINAL };

struct log_call {
    enum log_what what;
    char job[64], stream[128];
    int after; /* the stream, or the line */
    union {
        log_stream_cb stream;
        log_page_cb page;
        sagemaker_metrics_cb final;
    } cb;
    void *ctx;
    struct sagemaker_call *under_way;
    /* the answer */
    char next[160], text[PAGE][80];
    struct log_line lines[PAGE];
    struct job_metric final[2];
    size_t n;
};

/* Of one stream, "<job>/algo-1-<n>". */
static int number_of(const char *stream)
{
    return stream[strlen(stream) - 1] - '0';
}

static bool is_complete(const struct job *j)
{
    return j->over && strcmp(j->status, "Completed") == 0;
}

static void write_line(struct log_call *k, const struct job *j, int i, usec_t at, bool last)
{
    int cents = last ? j->cents : (int)((j->attempt_id * 7919 + i * 104729) % 700);
    char *text = k->text[k->n];
    if (j->mute) {
        (void)snprintf(text, sizeof k->text[0], "epoch %d", i);
    } else {
        (void)snprintf(text, sizeof k->text[0], "step=%d loss=%d.%02d accuracy=%d.%02d", i,
                       cents / 100, cents % 100, (1000 - cents) / 100, (1000 - cents) % 100);
    }
    k->lines[k->n++] =
        (struct log_line){.time = aws_time(at), .host = STR("algo-1"), .text = str_of(text)};
}

static void effect_lines(struct log_call *k, const struct job *j)
{
    bool first = number_of(k->stream) == 0;
    bool ends = first == (j->again_at == 0); /* its last stream */
    usec_t from = first ? j->started : j->again_at;
    usec_t until = first && j->cut_at != 0 ? j->cut_at : j->over ? j->ended : wall_now();
    usec_t seen = wall_now() - j->log_late_us;
    int n = (int)(MAX(0, MIN(until, seen) - from) / LINE_US);
    int all = n + (ends && is_complete(j) && seen >= j->ended);
    for (int i = k->after; i < all && k->n < PAGE; i++) {
        write_line(k, j, i, i < n ? from + (i + 1) * LINE_US : j->ended, i == n);
    }
    (void)snprintf(k->next, sizeof k->next, "%d", k->after + (int)k->n);
}

static void effect_final(struct log_call *k, const struct job *j)
{
    if (is_complete(j) && !j->mute && !j->no_final) {
        k->n = 2;
        k->final[0] = (struct job_metric){.name = "loss", .value = j->cents / 100.0};
        k->final[1] = (struct job_metric){.name = "accuracy", .value = (1000 - j->cents) / 100.0};
    }
}

static void effect(void *x, UNUSED usec_t signed_us, struct aws_failure *f)
{
    struct log_call *k = x;
    const struct job *j = job_find(k->job);
    k->n = 0;
    k->next[0] = '\0';
    if (j == NULL || j->started == 0) {
        return;
    }
    if (k->what == FINAL) {
        effect_final(k, j);
    } else if (j->denied_at != 0 && wall_now() >= j->denied_at) {
        aws_refuse(f, AWS_REFUSED, "AccessDeniedException", "it may not be read");
    } else if (k->what == LINES) {
        effect_lines(k, j);
    } else if (k->after < (j->again_at != 0 ? 1 : 0)) {
        (void)snprintf(k->next, sizeof k->next, "%s/algo-1-%d", k->job, k->after + 1);
    }
}

static void give(void *x, const struct aws_failure *f)
{
    struct log_call *k = x;
    if (k->what == STREAM) {
        k->cb.stream(k->ctx, f == NULL ? k->next : "", f);
    } else if (k->what == LINES) {
        k->cb.page(k->ctx, k->lines, f == NULL ? k->n : 0, f == NULL ? k->next : "", f);
    } else {
        k->cb.final(k->ctx, k->final, f == NULL ? k->n : 0, f);
    }
}

static struct log_call *call_new(struct aws_client *c, struct aws_gate gate, struct str job,
                                 struct log_call with)
{
    static const struct call_kind_of kinds[] = {[STREAM] = {"log stream", false, effect, give},
                                                [LINES] = {"log lines", false, effect, give},
                                                [FINAL] = {"final metrics", false, effect, give}};
    struct log_call *k = world_alloc(sizeof *k);
    *k = with;
    (void)snprintf(k->job, sizeof k->job, "%.*s", (int)job.n, job.p);
    k->under_way = call_other(c, gate, &kinds[k->what], k->job, k);
    return k;
}

struct log_pages_call *log_stream_after(struct aws_client *c, struct aws_gate gate,
                                        const char *job_name, const char *after, log_stream_cb cb,
                                        void *ctx)
{
    struct log_call with = {.what = STREAM, .cb.stream = cb, .ctx = ctx, .after = -1};
    with.after = after[0] != '\0' ? number_of(after) : -1;
    return (struct log_pages_call *)(void *)call_new(c, gate, str_of(job_name), with);
}

struct log_pages_call *log_page_get(struct aws_client *c, struct aws_gate gate, const char *stream,
                                    const char *token, log_page_cb cb, void *ctx)
{
    struct log_call with = {.what = LINES, .cb.page = cb, .ctx = ctx};
    int64_t after = 0;
    (void)snprintf(with.stream, sizeof with.stream, "%s", stream);
    if (token[0] != '\0' && !parse_i64(str_of(token), 0, INT32_MAX, &after, NULL)) {
        deep_die("a token of no page: %s", token);
    }
    with.after = (int)after;
    return (struct log_pages_call *)(void *)call_new(
        c, gate, (struct str){stream, strcspn(stream, "/")}, with);
}

struct sagemaker_call *sagemaker_final_metrics(struct aws_client *c, struct aws_gate gate,
                                               const char *name, sagemaker_metrics_cb cb, void *ctx)
{
    const struct log_call with = {.what = FINAL, .cb.final = cb, .ctx = ctx};
    return call_new(c, gate, str_of(name), with)->under_way;
}

void log_pages_cancel(struct log_pages_call *call)
{
    if (call != NULL) {
        call_cancel(((struct log_call *)(void *)call)->under_way);
    }
}
