/* See listings.h. */
#include "listings.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/input_listing.h"
#include "listed_parts.h"
#include "metrics.h"
#include "store/api/campaigns.h"
#include "store/api/input_listings.h"
#include "store/api/part_load.h"
#include "store/pg/tx.h"
#include <string.h>

#define LISTING_AGAIN_US (5 * USEC_PER_SEC) /* until a listing that broke off begins again */
#define LISTINGS_AT_ONCE 4
#define ROWS_MAX         64 /* looked at in a pass */

struct under_way {
    int64_t stage_id; /* 0: a free place */
    int64_t question; /* of the bridge; 0: not asked */
    int64_t again_us; /* monotonic: not asked before */
    bool seen;        /* its row was among those of this pass */
    struct bridge_progress shown;
};
struct listings {
    struct bridge *bridge;
    struct store *store; /* of this look */
    struct under_way at[LISTINGS_AT_ONCE];
};

struct listings *listings_new(struct bridge *b)
{
    struct listings *t = xcalloc(1, sizeof *t);
    t->bridge = b;
    return t;
}

void listings_free(struct listings *t)
{
    listings_let_go(t);
    free(t);
}

static void forget(struct listings *t, struct under_way *u)
{
    if (u->question != 0) {
        bridge_leave(t->bridge, u->question);
    }
    *u = (struct under_way){0};
}

void listings_let_go(struct listings *t)
{
    for (size_t i = 0; i < ARRAY_LEN(t->at); i++) {
        forget(t, &t->at[i]);
    }
}

/* The place of a stage, or one that is free for it; NULL: none is. */
static struct under_way *place_of(struct listings *t, int64_t stage_id)
{
    struct under_way *free_one = NULL;
    for (size_t i = 0; i < ARRAY_LEN(t->at); i++) {
        if (t->at[i].stage_id == stage_id) {
            return &t->at[i];
        }
        free_one = t->at[i].stage_id == 0 && free_one == NULL ? &t->at[i] : free_one;
    }
    return free_one;
}

static bool end(struct listings *t, const struct apidb_input_listing *l, const char *state,
                const char *problem, struct err *err)
{
    AUTO_TX struct store *tx = t->store;
    if (!tx_begin(tx, TX_WRITE, err) ||
        !apidb_input_listing_end(tx, l->stage_id, state, problem, -1, err) ||
        !apidb_notify(tx, err) || !tx_commit(tx, err)) {
        return false;
    }
    log_event(strcmp(state, "failed") == 0 ? LOG_WARN : LOG_INFO, "input_listing_ended",
              LF_I("campaign", l->campaign_id), LF_I("stage", l->stage_id), LF_S("as", state),
              LF_S("problem", problem));
    return true;
}

static bool parts_write(struct listings *t, const struct apidb_input_listing *l,
                        const struct bridge_listing *listing, struct err *err)
{
    bool goes_on;
    AUTO_TX struct store *tx = t->store;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_bulk(tx, err) ||
        !apidb_input_listing_lock(tx, l->stage_id, &goes_on, err)) {
        return false;
    }
    if (!goes_on) { /* another leader has written them */
        return true;
    }
    return listed_parts_load(tx, l->campaign_id, l->stage_id, listing, l->per_part, err) &&
           apidb_input_listing_end(tx, l->stage_id, "done", "", (int64_t)listing->n, err) &&
           apidb_notify(tx, err) && apidb_load_publish(tx, l->campaign_id, err) &&
           tx_commit(tx, err);
}

/* An error that will keep parts from being written fails the listing; after others it begins
 * again. */
static bool write_or_end(struct listings *t, const struct apidb_input_listing *l,
                         struct under_way *u, const struct bridge_listing *listing, struct err *err)
{
    struct err why = ERR_INIT;
    bool ok = parts_write(t, l, listing, &why);
    apidb_bulk_end(t->store);
    if (ok) {
        int64_t parts = input_listing_parts((int64_t)listing->n, l->per_part);
        metric_add(METRIC_PARTS_INSERTED, parts);
        log_event(LOG_INFO, "input_listed", LF_I("campaign", l->campaign_id),
                  LF_I("stage", l->stage_id), LF_I("parts", parts));
        forget(t, u);
        return true;
    }
    if (input_listing_final(&why)) {
        forget(t, u);
        return end(t, l, "failed", why.message, err);
    }
    u->again_us = clock_mono_us() + LISTING_AGAIN_US;
    *err = why;
    return false;
}

static bool ask(struct listings *t, const struct apidb_input_listing *l, struct under_way *u,
                struct err *err)
{
    struct bridge_question q = {.kind = BRIDGE_S3_LIST, .max = BRIDGE_OBJECTS_MAX, .patient = true};
    size_t n = strlen(l->uri);
    if (n >= sizeof q.uri) {
        return end(t, l, "failed", "fan_out.from is too long", err);
    }
    memcpy(q.uri, l->uri, n);
    u->stage_id = l->stage_id;
    if (!bridge_begin(t->bridge, &q, &u->question, err)) {
        u->again_us = clock_mono_us() + LISTING_AGAIN_US;
        return false;
    }
    u->shown = (struct bridge_progress){0};
    return apidb_input_listing_progress(t->store, l->stage_id, 0, 0, 0, "", err);
}

static bool show(struct listings *t, struct under_way *u, const struct bridge_progress *now,
                 struct err *err)
{
    if (memcmp(&u->shown, now, sizeof *now) == 0) {
        return true;
    }
    u->shown = *now;
    return apidb_input_listing_progress(t->store, u->stage_id, now->pages, now->objects,
                                        now->refused, now->problem, err);
}

/* One look at one of them. u NULL: there is no place for it. */
static bool step(struct listings *t, const struct apidb_input_listing *l, struct under_way *u,
                 struct err *err)
{
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    struct bridge_progress now = {0};
    struct err why = ERR_INIT;
    struct input_listing_facts f = {.wanted = l->wanted, .uri = l->uri, .why = &why};
    f.room = u != NULL && clock_mono_us() >= u->again_us;
    if (u != NULL && u->question != 0) {
        enum bridge_turn turn = bridge_look(t->bridge, u->question, 0, &reply, &now, &why);
        f.answer = turn == BRIDGE_WAITS      ? INPUT_LISTING_WAITS
                   : turn == BRIDGE_ANSWERED ? INPUT_LISTING_CAME
                                             : INPUT_LISTING_REFUSED;
        u->question = turn == BRIDGE_WAITS ? u->question : 0;
        f.objects = (int64_t)reply.listing.n;
    }
    char problem[700];
    enum input_listing_then then = input_listing_next(&f, problem, sizeof problem);
    ASSERT(u != NULL || then == INPUT_LISTING_STAYS || then == INPUT_LISTING_STOPS);
    switch (then) {
    case INPUT_LISTING_STAYS:
        return f.answer != INPUT_LISTING_WAITS || show(t, u, &now, err);
    case INPUT_LISTING_ASKS:
        return ask(t, l, u, err);
    case INPUT_LISTING_WRITES:
        return write_or_end(t, l, u, &reply.listing, err);
    case INPUT_LISTING_FAILS:
        forget(t, u);
        return end(t, l, "failed", problem, err);
    case INPUT_LISTING_AGAIN:
        u->again_us = clock_mono_us() + LISTING_AGAIN_US;
        return apidb_input_listing_progress(t->store, l->stage_id, u->shown.pages, u->shown.objects,
                                            u->shown.refused, problem, err);
    case INPUT_LISTING_STOPS:
        if (u != NULL) {
            forget(t, u);
        }
        return end(t, l, "cancelled", "", err);
    }
    BUG("what becomes of a listing");
}

/* What cannot be done for one of them keeps no other from going on. */
bool listings_look(struct listings *t, struct store *s, struct err *err)
{
    t->store = s;
    struct apidb_input_listing rows[ROWS_MAX];
    size_t n = 0;
    bool good = apidb_input_listings(t->store, rows, ARRAY_LEN(rows), &n, err);
    bool read = good;
    for (size_t i = 0; i < ARRAY_LEN(t->at); i++) {
        t->at[i].seen = !read;
    }
    for (size_t i = 0; i < n && read; i++) {
        struct under_way *u = place_of(t, rows[i].stage_id);
        if (u != NULL && u->stage_id != 0) {
            u->seen = true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(t->at); i++) {
        if (t->at[i].stage_id != 0 && !t->at[i].seen) { /* ended by another one */
            forget(t, &t->at[i]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        good = (!store_alive(t->store) || step(t, &rows[i], place_of(t, rows[i].stage_id), err)) &&
               good;
        free(rows[i].uri);
    }
    return good;
}
