/* See record_queue.h. */
#include "record_queue.h"
#include "common/cleanup.h"
#include "parking.h"
#include <stdlib.h>

/* What its log said, and beside it what its rules have found. */
static char *evidence_of(struct live_attempt *a)
{
    AUTO_FREE char *said = TAKE(a->evidence);
    AUTO_FREE char *rules = TAKE(a->rules);
    if (rules == NULL) {
        return TAKE(said);
    }
    return said == NULL ? xasprintf("{\"rules\":%s}", rules)
                        : xasprintf("%.*s,\"rules\":%s}", (int)strlen(said) - 1, said, rules);
}

void leader_push_record(struct leader_state *s, struct live_attempt *a,
                        const struct pending_record *p)
{
    ASSERT(!a->recording && p->r.attempt_id == a->row.id);
    if (s->records_n == s->records_cap) {
        s->records_cap = MAX(64, s->records_cap * 2);
        s->records = xrealloc(s->records, s->records_cap * sizeof *s->records);
    }
    struct pending_record *last = &s->records[s->records_n++];
    *last = *p;
    last->manifest = p->r.task_moves ? TAKE(a->manifest) : NULL;
    /* its rules with its bill: who verifies its output may be another leader */
    last->evidence = p->r.release || p->r.task_moves ? evidence_of(a) : NULL;
    a->recording = true;
}

/* Its attempt has to be read again from its row, since memory is ahead of that. */
static void drop(struct leader_state *s, struct pending_record *p)
{
    struct live_attempt *a = leader_state_attempt(s, p->r.attempt_id);
    ASSERT(a != NULL && a->recording);
    free(p->manifest);
    free(p->evidence);
    p->manifest = p->evidence = NULL;
    p->over = true;
    a->recording = false;
    a->reread = true;
}

static struct parking_subject subject_of(const struct pending_record *p)
{
    return PARKING_ATTEMPT(p->r.campaign_id, p->r.attempt_id);
}

bool leader_record_due(const struct leader_state *s, const struct pending_record *p,
                       int64_t boot_us)
{
    struct parking_subject who = subject_of(p);
    return parking_may(s, &who, boot_us);
}

void leader_record_not_taken(struct leader_state *s, struct pending_record *p)
{
    struct parking_subject who = subject_of(p);
    if (parking_parked(s, &who)) {
        drop(s, p);
    }
}

void leader_forget_records(struct leader_state *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->records_n; i++) {
        if (!s->records[i].over) {
            s->records[kept++] = s->records[i];
        }
    }
    s->records_n = kept;
}
