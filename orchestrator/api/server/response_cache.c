/* See response_cache.h. A full cache drops its oldest answer. */
#include "response_cache.h"
#include "common/clock.h"
#include "common/hash.h"
#include "request.h"
#include "store/pg/connection.h"
#include <pthread.h>

#define ANSWERS_N   64
#define COST_FACTOR 10
#define CHEAP_US    20000               /* cheaper answers are not cached longer than fresh_us */
#define OLD_US      (30 * USEC_PER_SEC) /* the oldest given while a dear one is made again */
/* A slow database needs longer for a large campaign than other requests may take: given up, an
 * answer would be begun again by each who asks and be given to nobody. */
#define STATEMENT_US (20 * USEC_PER_SEC)

struct cached_answer {
    char key[RESPONSE_CACHE_KEY_MAX];
    uint64_t version;
    int64_t at_us, cost_us;
    char *json; /* NULL: empty */
};
/* An answer that a thread is making. */
struct answer_making {
    const char *key; /* the maker's, which outlives it: nobody looks for it when it is over */
    uint64_t version, nth;
    bool over;
    char *json;  /* once over; NULL: it could not be made */
    int waiting; /* threads; the last one frees it */
    struct answer_making *next;
};
struct response_later {
    struct response_cache *c;
    struct response_cache_ask ask; /* with this key */
    char key[RESPONSE_CACHE_KEY_MAX];
    response_cache_make make;
    void *ctx;
    struct answer_making *mine;
};
struct response_cache {
    pthread_mutex_t lock;
    pthread_cond_t made;
    struct cached_answer at[ANSWERS_N];
    struct answer_making *making;
    uint64_t begun;            /* of making, so far */
    pthread_mutex_t turn_lock; /* of turn_taken */
    pthread_cond_t turn_free;
    bool turn_taken;
};

struct response_cache *response_cache_new(void)
{
    struct response_cache *c = xcalloc(1, sizeof *c);
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_cond_init(&c->made, NULL);
    pthread_condattr_t mono;
    (void)pthread_mutex_init(&c->turn_lock, NULL);
    (void)pthread_condattr_init(&mono);
    (void)pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&c->turn_free, &mono);
    (void)pthread_condattr_destroy(&mono);
    return c;
}

void response_cache_free(struct response_cache *c)
{
    if (c == NULL) {
        return;
    }
    ASSERT(c->making == NULL);
    for (size_t i = 0; i < ANSWERS_N; i++) {
        free(c->at[i].json);
    }
    (void)pthread_mutex_destroy(&c->lock);
    (void)pthread_cond_destroy(&c->made);
    (void)pthread_cond_destroy(&c->turn_free);
    (void)pthread_mutex_destroy(&c->turn_lock);
    free(c);
}

static struct cached_answer *find(struct response_cache *c, const char *key)
{
    for (size_t i = 0; i < ANSWERS_N; i++) {
        if (c->at[i].json != NULL && strcmp(c->at[i].key, key) == 0) {
            return &c->at[i];
        }
    }
    return NULL;
}

/* A copy of a kept answer that is valid, or NULL. While another is made, a dear one is valid for
 * longer: of all who ask, one waits. */
static char *kept(struct response_cache *c, const struct response_cache_ask *ask, bool is_made)
{
    const struct cached_answer *a = find(c, ask->key);
    if (a == NULL) {
        return NULL;
    }
    int64_t age = clock_mono_us() - a->at_us;
    bool dear = a->cost_us >= CHEAP_US && !ask->strict;
    int64_t dear_us = dear ? MAX(COST_FACTOR * a->cost_us, is_made ? OLD_US : 0) : 0;
    bool valid =
        age < MAX(ask->fresh_us, dear_us) || (a->version == ask->version && age < ask->same_us);
    return valid ? xstrdup(a->json) : NULL;
}

static void keep(struct response_cache *c, const struct response_cache_ask *ask, int64_t cost_us,
                 const char *json)
{
    struct cached_answer *to = find(c, ask->key);
    for (size_t i = 0; to == NULL && i < ANSWERS_N; i++) {
        to = c->at[i].json == NULL ? &c->at[i] : NULL;
    }
    if (to == NULL) {
        to = &c->at[0];
        for (size_t i = 1; i < ANSWERS_N; i++) {
            to = c->at[i].at_us < to->at_us ? &c->at[i] : to;
        }
    }
    free(to->json);
    *to = (struct cached_answer){.version = ask->version,
                                 .at_us = clock_mono_us(),
                                 .cost_us = cost_us,
                                 .json = xstrdup(json)};
    memcpy(to->key, ask->key, strlen(ask->key) + 1);
}

static struct answer_making *making_find(struct response_cache *c, const char *key)
{
    struct answer_making *m = c->making;
    while (m != NULL && strcmp(m->key, key) != 0) {
        m = m->next;
    }
    return m;
}

/* Waits until m is over; a copy of its answer, NULL when it could not be made. */
static char *making_wait(struct response_cache *c, struct answer_making *m)
{
    m->waiting++;
    while (!m->over) {
        (void)pthread_cond_wait(&c->made, &c->lock);
    }
    char *json = m->json != NULL ? xstrdup(m->json) : NULL;
    if (--m->waiting == 0) {
        free(m->json);
        free(m);
    }
    return json;
}

static struct answer_making *making_begin(struct response_cache *c,
                                          const struct response_cache_ask *ask)
{
    struct answer_making *m = xcalloc(1, sizeof *m);
    *m = (struct answer_making){
        .key = ask->key, .version = ask->version, .nth = ++c->begun, .next = c->making};
    c->making = m;
    return m;
}

/* json NULL: it could not be made. */
static void making_end(struct response_cache *c, struct answer_making *m, const char *json)
{
    struct answer_making **at = &c->making;
    while (*at != m) {
        at = &(*at)->next;
    }
    *at = m->next;
    m->over = true;
    m->json = json != NULL && m->waiting > 0 ? xstrdup(json) : NULL;
    if (m->waiting == 0) {
        free(m);
    }
    (void)pthread_cond_broadcast(&c->made);
}

/* The answer without making it, or NULL with *ret_mine begun, to be made by this thread. What was
 * begun before this call, of another version, may be too old; it is waited for all the same, so
 * that of one key one is made at a time. *ret_mine NULL: what was waited for could not be made, and
 * nobody waits for this thread. */
static char *answer_or_begin(struct response_cache *c, const struct response_cache_ask *ask,
                             struct answer_making **ret_mine)
{
    uint64_t before = c->begun;
    *ret_mine = NULL;
    for (;;) {
        struct answer_making *m = making_find(c, ask->key);
        char *json = kept(c, ask, m != NULL);
        if (json != NULL) {
            return json;
        }
        if (m == NULL) {
            *ret_mine = making_begin(c, ask);
            return NULL;
        }
        bool ours = m->version == ask->version || m->nth > before;
        json = making_wait(c, m);
        if (ours) {
            return json;
        }
        free(json);
    }
}

static bool make_with_time(const struct response_cache_ask *ask, response_cache_make make,
                           void *ctx, struct buf *b, struct err *err)
{
    struct err ignored = ERR_INIT;
    if (ask->db == NULL) {
        return make(ctx, b, err);
    }
    bool ok = store_statement_limit(ask->db, STATEMENT_US, err) && make(ctx, b, err);
    return store_statement_limit(ask->db, 0, ok ? err : &ignored) && ok;
}

/* Makes the answer; NULL with *err. */
static char *made(struct response_cache *c, const struct response_cache_ask *ask,
                  response_cache_make make, void *ctx, int64_t *ret_cost_us, struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(API_ANSWER_MAX);
    if (ask->in_turn) {
        response_cache_turn(c);
    }
    int64_t began_us = clock_mono_us();
    bool ok = make_with_time(ask, make, ctx, &b, err);
    *ret_cost_us = clock_mono_us() - began_us;
    if (ask->in_turn) {
        response_cache_turn_end(c);
    }
    return ok ? buf_take(&b) : NULL;
}

/* Makes the answer and tells those that wait for `mine`; NULL with *err. */
static char *make_and_tell(struct response_cache *c, const struct response_cache_ask *ask,
                           response_cache_make make, void *ctx, struct answer_making *mine,
                           struct err *err)
{
    int64_t cost_us = 0;
    char *json = made(c, ask, make, ctx, &cost_us, err);
    (void)pthread_mutex_lock(&c->lock);
    if (json != NULL) {
        keep(c, ask, cost_us, json);
    }
    if (mine != NULL) {
        making_end(c, mine, json);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return json;
}

bool response_cache_answer(struct response_cache *c, const struct response_cache_ask *ask,
                           response_cache_make make, void *ctx, char **ret, struct err *err)
{
    struct answer_making *mine;
    ASSERT(strlen(ask->key) < RESPONSE_CACHE_KEY_MAX);
    (void)pthread_mutex_lock(&c->lock);
    *ret = answer_or_begin(c, ask, &mine);
    (void)pthread_mutex_unlock(&c->lock);
    if (*ret == NULL) {
        *ret = make_and_tell(c, ask, make, ctx, mine, err);
    }
    return *ret != NULL;
}

static void later_free(struct response_later *l)
{
    free(l->ctx);
    free(l);
}

/* Begins what the caller makes when its request has its answer. */
static struct response_later *later_begin(struct response_cache *c,
                                          const struct response_cache_ask *ask,
                                          response_cache_make make, void *ctx, size_t ctx_size)
{
    struct response_later *l = xcalloc(1, sizeof *l);
    *l = (struct response_later){.c = c, .ask = *ask, .make = make, .ctx = xmalloc(ctx_size)};
    memcpy(l->key, ask->key, strlen(ask->key) + 1);
    memcpy(l->ctx, ctx, ctx_size);
    l->ask.key = l->key;
    l->mine = making_begin(c, &l->ask);
    return l;
}

char *response_cache_last(struct response_cache *c, const struct response_cache_ask *ask,
                          response_cache_make make, void *ctx, size_t ctx_size,
                          struct response_later **ret_later)
{
    ASSERT(strlen(ask->key) < RESPONSE_CACHE_KEY_MAX);
    *ret_later = NULL;
    (void)pthread_mutex_lock(&c->lock);
    char *json = kept(c, ask, false);
    bool begins = json == NULL && making_find(c, ask->key) == NULL;
    json = json != NULL ? json : kept(c, ask, true);
    if (begins) {
        *ret_later = later_begin(c, ask, make, ctx, ctx_size);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return json;
}

bool response_cache_answer_or_last(struct response_cache *c, const struct response_cache_ask *ask,
                                   response_cache_make make, void *ctx, size_t ctx_size, char **ret,
                                   struct response_later **ret_later, struct err *err)
{
    *ret = response_cache_last(c, ask, make, ctx, ctx_size, ret_later);
    if (*ret != NULL) {
        return true;
    }
    struct response_later *mine = TAKE(*ret_later); /* nothing will do: it is made now */
    if (mine == NULL) {
        return response_cache_answer(c, ask, make, ctx, ret, err);
    }
    *ret = make_and_tell(c, ask, make, ctx, mine->mine, err);
    later_free(mine);
    return *ret != NULL;
}

static bool not_made(void *ctx UNUSED, struct buf *out UNUSED, struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "there is no database");
}

void response_later_make(struct response_later *l, struct store *db)
{
    struct err ignored = ERR_INIT; /* who asks next makes it and is told */
    *(struct store **)l->ctx = db;
    l->ask.db = l->ask.db != NULL ? db : NULL;
    free(make_and_tell(l->c, &l->ask, db != NULL ? l->make : not_made, l->ctx, l->mine, &ignored));
    later_free(l);
}

uint64_t response_cache_version(const void *p, size_t n)
{
    uint8_t sha[32];
    uint64_t ret;
    hash_sha256(p, n, sha);
    memcpy(&ret, sha, sizeof ret);
    return ret;
}

/* until NULL: for ever. No mutex with a time-out: TSan does not know pthread_mutex_clocklock. */
static bool turn_take(struct response_cache *c, const struct timespec *until)
{
    int late = 0;
    (void)pthread_mutex_lock(&c->turn_lock);
    while (c->turn_taken && late == 0) {
        late = until == NULL ? pthread_cond_wait(&c->turn_free, &c->turn_lock)
                             : pthread_cond_timedwait(&c->turn_free, &c->turn_lock, until);
    }
    bool mine = !c->turn_taken;
    c->turn_taken = true;
    (void)pthread_mutex_unlock(&c->turn_lock);
    return mine;
}

void response_cache_turn(struct response_cache *c)
{
    (void)turn_take(c, NULL);
}

bool response_cache_turn_soon(struct response_cache *c, int64_t wait_us)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (until.tv_nsec / 1000 + wait_us) / USEC_PER_SEC;
    until.tv_nsec = (until.tv_nsec / 1000 + wait_us) % USEC_PER_SEC * 1000;
    return turn_take(c, &until);
}

void response_cache_turn_end(struct response_cache *c)
{
    (void)pthread_mutex_lock(&c->turn_lock);
    c->turn_taken = false;
    (void)pthread_cond_signal(&c->turn_free);
    (void)pthread_mutex_unlock(&c->turn_lock);
}
