/* See event_batch.h. */
#include "event_batch.h"
#include "store/api/events.h"

#define TEXT_MAX (8 * 1024 * 1024)

void event_batch_init(struct event_batch *b)
{
    buf_init(&b->text, TEXT_MAX);
}

void event_batch_done(struct event_batch *b)
{
    buf_done(&b->text);
}

static void on_event(void *ctx, const struct apidb_event *e)
{
    struct event_batch *b = ctx;
    size_t begin = b->text.n;
    ASSERT(b->n < EVENT_BATCH_N);
    buf_addf(&b->text, "id: %lld\nevent: %s\ndata: %s\n\n", (long long)e->id, e->kind, e->json);
    if (!b->text.overflow) {
        b->at[b->n].id = e->id;
        b->at[b->n].campaign_id = e->campaign_id;
        (void)snprintf(b->at[b->n].project, sizeof b->at[b->n].project, "%s", e->project);
        b->at[b->n].begin = begin;
        b->at[b->n++].end = b->text.n;
    }
}

bool event_batch_read(struct store *db, int64_t after, int64_t campaign_id, struct event_batch *b,
                      bool *ret_whole, struct err *err)
{
    int64_t n, last;
    buf_reset(&b->text);
    b->text.overflow = false;
    b->n = 0;
    if (!apidb_events(db, after, campaign_id, EVENT_BATCH_N, on_event, b, &n, &last, err)) {
        return false;
    }
    b->last = b->n > 0 ? b->at[b->n - 1].id : after;
    *ret_whole = n < EVENT_BATCH_N && b->n == n;
    return true;
}
