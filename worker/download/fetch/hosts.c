/* A hash table of hosts. An entry lives while it holds information: an open transfer, parked rows,
 * an answer, a failure or a pause. Hosts with parked rows form a ring; each gets one row through in
 * turn. */
#include "hosts.h"
#include "common/hash.h"
#include <pthread.h>
#include <stdio.h>

#define HOST_BUCKETS 4096u
#define STILL_US     (500 * USEC_PER_MSEC)
/* maximum of quiet times between the first and last of hosts that fell silent at once */
#define AT_ONCE 3

struct host {
    struct host *next; /* in the bucket */
    struct host *ring_next;
    int64_t open_n;
    int pauses_n; /* pauses in a row */
    int64_t pauses_from_us, not_before_us;
    int64_t dripped_us; /* last useless bytes */
    int64_t refused_us; /* last refusal of a connection; 0: never */
    bool answers; /* it answered when the network went down, so it says nothing about its return */
    bool probed;  /* its one transfer counts in probes_n */
    struct silence silence;
    struct queue_item *parked;
    struct queue_item **parked_tail;
    size_t parked_n;
    char name[];
};
struct hosts {
    pthread_mutex_t lock;
    struct hosts_rules rules;
    struct silence_rules silence;
    struct network_watch network;
    int64_t heard_us; /* last time any host was heard */
    int64_t look_us;  /* time of the next look */
    int64_t back_us;  /* the network came back then; 0: it was never down */
    int probes_n;     /* transfers with silent hosts that have answered before */
    size_t n, parked_n, parked_bytes;
    struct host *ring; /* last of the ring: ring->ring_next has the next turn; NULL: empty */
    struct host *buckets[HOST_BUCKETS];
};

struct hosts *hosts_new(const struct hosts_rules *r)
{
    ASSERT(r->per_host > 0 && r->timeout_us > 0 && r->patience_us > 0 && r->probes_max > 0);
    struct hosts *hs = xcalloc(1, sizeof *hs);
    hs->rules = *r;
    hs->silence =
        (struct silence_rules){MIN(r->timeout_us / 2, HOST_NETWORK_QUIET_MAX), r->patience_us};
    (void)pthread_mutex_init(&hs->lock, NULL);
    return hs;
}

void hosts_free(struct hosts *hs, void (*free_item)(struct queue_item *i))
{
    if (hs == NULL) {
        return;
    }
    for (size_t b = 0; b < HOST_BUCKETS; b++) {
        for (struct host *h = hs->buckets[b], *next; h != NULL; h = next) {
            next = h->next;
            for (struct queue_item *i = h->parked, *after; i != NULL; i = after) {
                after = i->next;
                free_item(i);
            }
            free(h);
        }
    }
    (void)pthread_mutex_destroy(&hs->lock);
    free(hs);
}

/* Drop entries with nothing open or parked: first those without a fault, then all. */
static void make_room(struct hosts *hs, bool well)
{
    for (size_t b = 0; b < HOST_BUCKETS; b++) {
        for (struct host **p = &hs->buckets[b]; *p != NULL;) {
            struct host *h = *p;
            bool is_well = h->pauses_n == 0 && !silence_is_silent(&h->silence);
            if (h->open_n == 0 && h->parked_n == 0 && (is_well || !well)) {
                *p = h->next;
                free(h);
                hs->n--;
            } else {
                p = &h->next;
            }
        }
    }
}

static struct host **slot_of(struct hosts *hs, const char *key)
{
    struct host **p = &hs->buckets[hash_crc32(key, strlen(key)) % HOST_BUCKETS];
    while (*p != NULL && strcmp((*p)->name, key) != 0) {
        p = &(*p)->next;
    }
    return p;
}

static struct host *host_of(struct hosts *hs, const char *name, int port)
{
    char key[HOST_NAME_BYTES_MAX];
    (void)snprintf(key, sizeof key, "%.280s:%d", name, port);
    struct host **at = slot_of(hs, key);
    if (*at == NULL) {
        if (hs->n >= HOSTS_MAX) {
            make_room(hs, true);
        }
        if (hs->n >= HOSTS_MAX) {
            make_room(hs, false);
        }
        at = slot_of(hs, key);
        size_t n = strlen(key) + 1;
        struct host *made = xcalloc(1, sizeof *made + n);
        memcpy(made->name, key, n);
        made->parked_tail = &made->parked;
        *at = made;
        hs->n++;
    }
    return *at;
}

static void park(struct hosts *hs, struct host *h, struct queue_item *i)
{
    i->next = NULL;
    *h->parked_tail = i;
    h->parked_tail = &i->next;
    hs->parked_n++;
    hs->parked_bytes += i->bytes;
    if (h->parked_n++ > 0) {
        return;
    }
    h->ring_next = hs->ring != NULL ? hs->ring->ring_next : h;
    if (hs->ring != NULL) {
        hs->ring->ring_next = h;
    }
    hs->ring = h;
}

static bool is_away(const struct hosts *hs, const struct host *h, int64_t now_us)
{
    return h->pauses_n >= HOST_PAUSES_MAX && now_us < h->not_before_us &&
           (!hs->rules.retries || now_us - h->pauses_from_us >= hs->rules.patience_us);
}

/* Silent, but not dead from the start: a transfer with it takes one of the places. */
static bool has_stopped(const struct host *h)
{
    return silence_is_silent(&h->silence) && h->silence.answered_us != 0;
}

/* Probes use a part of the places, so that they do not keep answering hosts waiting. */
static bool has_probe(const struct hosts *hs)
{
    return hs->probes_n < hs->rules.probes_max;
}

static void begin_probe(struct hosts *hs, struct host *h)
{
    hs->probes_n += h->probed ? 0 : 1;
    h->probed = true;
}

static void end_probe(struct hosts *hs, struct host *h)
{
    hs->probes_n -= h->probed ? 1 : 0;
    h->probed = false;
}

static enum host_turn turn_of(const struct hosts *hs, const struct host *h, int64_t now_us)
{
    bool away = hs->network.away_us != 0; /* then the network's probes are few */
    if (!silence_may_ask(&h->silence, h->open_n, now_us) ||
        (!away && has_stopped(h) && !has_probe(hs))) {
        return silence_is_given_up(&h->silence) ? HOST_DOWN : HOST_REST;
    }
    if (now_us < h->not_before_us) {
        return is_away(hs, h, now_us) ? HOST_AWAY : HOST_REST;
    }
    /* A host that asked for a pause is probed one transfer at a time. */
    int64_t most = h->pauses_n > 0 ? 1 : hs->rules.per_host;
    return h->open_n >= most ? HOST_WAIT : HOST_GO;
}

enum host_turn hosts_enter(struct hosts *hs, const char *name, int port, int64_t now_us,
                           struct queue_item *item, struct host **ret)
{
    (void)pthread_mutex_lock(&hs->lock);
    struct host *h = host_of(hs, name, port);
    enum host_turn turn = turn_of(hs, h, now_us);
    if (turn == HOST_GO) {
        silence_begin(&h->silence, h->open_n, now_us);
        if (has_stopped(h)) {
            begin_probe(hs, h);
        }
        h->open_n++;
        *ret = h;
    } else if (item != NULL && (turn == HOST_WAIT || turn == HOST_REST)) {
        park(hs, h, item);
    }
    (void)pthread_mutex_unlock(&hs->lock);
    return turn;
}

static void forgive_all(struct hosts *hs)
{
    for (size_t b = 0; b < HOST_BUCKETS; b++) {
        for (struct host *h = hs->buckets[b]; h != NULL; h = h->next) {
            silence_forgive(&h->silence);
            end_probe(hs, h);
        }
    }
}

static void network_is_back(struct hosts *hs, int64_t now_us)
{
    hs->back_us = now_us;
    forgive_all(hs);
}

static void hear_network(struct hosts *hs, const struct host *h, int64_t now_us)
{
    hs->heard_us = MAX(hs->heard_us, now_us);
    if (network_hear(&hs->network, !h->answers)) {
        network_is_back(hs, now_us);
    }
}

void hosts_heard(struct hosts *hs, struct host *h, int64_t begun_us, int64_t now_us)
{
    (void)pthread_mutex_lock(&hs->lock);
    silence_hear(&h->silence, begun_us, now_us);
    if (!silence_is_silent(&h->silence)) {
        end_probe(hs, h);
    }
    hear_network(hs, h, now_us);
    (void)pthread_mutex_unlock(&hs->lock);
}

void hosts_dripped(struct hosts *hs, struct host *h, int64_t now_us)
{
    (void)pthread_mutex_lock(&hs->lock);
    h->dripped_us = now_us;
    hear_network(hs, h, now_us);
    (void)pthread_mutex_unlock(&hs->lock);
}

void hosts_refused(struct hosts *hs, struct host *h, int64_t now_us)
{
    (void)pthread_mutex_lock(&hs->lock);
    h->refused_us = now_us;
    if (network_refuse(&hs->network)) {
        network_is_back(hs, now_us);
    }
    (void)pthread_mutex_unlock(&hs->lock);
}

enum host_fault hosts_failed(struct hosts *hs, struct host *h, bool dripped, int64_t begun_us,
                             int64_t now_us)
{
    (void)pthread_mutex_lock(&hs->lock);
    bool silent = dripped ? silence_drip(&h->silence, begun_us, now_us)
                          : silence_fail(&h->silence, begun_us, now_us);
    bool network = hs->network.away_us != 0 || begun_us <= hs->back_us;
    (void)pthread_mutex_unlock(&hs->lock);
    return network ? HOST_FAULT_NETWORK : silent ? HOST_FAULT_HOST : HOST_FAULT_URL;
}

void hosts_leave(struct hosts *hs, struct host *h, bool answered, struct queue_item *back,
                 int64_t now_us)
{
    (void)pthread_mutex_lock(&hs->lock);
    ASSERT(h->open_n > 0);
    h->open_n--;
    end_probe(hs, h);
    if (answered) {
        silence_answer(&h->silence, now_us);
        h->pauses_n = now_us >= h->not_before_us ? 0 : h->pauses_n;
    }
    if (back != NULL) {
        park(hs, h, back);
    }
    (void)pthread_mutex_unlock(&hs->lock);
}

void hosts_pause(struct hosts *hs, struct host *h, int64_t now_us, int64_t pause_us)
{
    (void)pthread_mutex_lock(&hs->lock);
    int64_t until_us = now_us + MIN(MAX(pause_us, 0), HOST_PAUSE_MAX_US);
    if (now_us >= h->not_before_us) {
        h->pauses_from_us = h->pauses_n == 0 ? now_us : h->pauses_from_us;
        h->pauses_n = MIN(h->pauses_n + 1, HOST_PAUSES_MAX);
    }
    h->not_before_us = MAX(h->not_before_us, until_us);
    (void)pthread_mutex_unlock(&hs->lock);
}

static struct queue_item *unpark(struct hosts *hs, int64_t now_us)
{
    struct host *first = hs->ring;
    if (first == NULL) {
        return NULL;
    }
    struct host *before = first;
    do {
        struct host *h = before->ring_next;
        enum host_turn turn = turn_of(hs, h, now_us);
        if (turn != HOST_WAIT && turn != HOST_REST) {
            struct queue_item *i = h->parked;
            h->parked = i->next;
            hs->parked_n--;
            hs->parked_bytes -= i->bytes;
            if (--h->parked_n == 0) {
                h->parked_tail = &h->parked;
                hs->ring = h == before ? NULL : before;
                before->ring_next = h->ring_next;
            } else {
                hs->ring = h;
            }
            return i;
        }
        before = h;
    } while (before != first);
    return NULL;
}

struct queue_item *hosts_unpark(struct hosts *hs, int64_t now_us)
{
    (void)pthread_mutex_lock(&hs->lock);
    struct queue_item *i = unpark(hs, now_us);
    (void)pthread_mutex_unlock(&hs->lock);
    return i;
}

/* A transfer yields once somebody was heard while it was stalled. Until then it may be our network
 * that failed, and each that began instead would be one more that waits in vain. */
static bool may_yield(const struct hosts *hs, const struct host *h, int64_t begun_us)
{
    return h->open_n == 1 && h->silence.answered_us == 0 &&
           (hs->heard_us == 0 || hs->heard_us >= begun_us + HOST_STALLED_US);
}

enum host_stall hosts_stalled(struct hosts *hs, struct host *h, int64_t begun_us)
{
    (void)pthread_mutex_lock(&hs->lock);
    const struct silence *s = &h->silence;
    bool unheard = s->heard_us < begun_us;
    enum host_stall stall = HOST_STALL_COUNTS;
    if (unheard && s->given_up_us > begun_us && silence_is_given_up(s)) {
        stall = HOST_STALL_OVER;
    } else if (unheard && silence_is_silent(s) && h->open_n > 1) {
        stall = HOST_STALL_GIVE;
    } else if (unheard && has_stopped(h) && !h->probed) {
        if (has_probe(hs)) {
            begin_probe(hs, h);
        } else {
            stall = HOST_STALL_GIVE;
        }
    } else if (may_yield(hs, h, begun_us)) {
        stall = HOST_STALL_YIELDS;
    }
    (void)pthread_mutex_unlock(&hs->lock);
    return stall;
}

/* True when a silent host sends none the less, or did until its body was given up. */
static bool drips(const struct host *h, int64_t now_us)
{
    return h->silence.drips ||
           (h->dripped_us > h->silence.since_us && now_us - h->dripped_us < SILENCE_QUIET_MIN_US);
}

static void count_in(const struct hosts *hs, const struct host *h, int64_t now_us,
                     struct network_census *c)
{
    const struct silence *s = &h->silence;
    c->refused += h->refused_us != 0 && now_us - h->refused_us < HOST_REFUSED_US ? 1 : 0;
    if (!silence_is_silent(s)) {
        c->heard += s->heard_us != 0 && now_us - s->heard_us < hs->silence.quiet_us ? 1 : 0;
    } else if (!drips(h, now_us) && s->given_up_us == 0 &&
               s->since_us >= hs->heard_us - AT_ONCE * hs->silence.quiet_us) {
        c->known += s->heard_us != 0 ? 1 : 0;
        c->unknown += s->heard_us == 0 ? 1 : 0;
    }
}

/* The network has gone down. Note the hosts that were heard since the last one fell silent: a
 * silent host may be forgiven before it answers again, so its silence cannot be looked at then. */
static void note_answers(struct hosts *hs)
{
    int64_t silent_us = 0;
    for (size_t b = 0; b < HOST_BUCKETS; b++) {
        for (const struct host *h = hs->buckets[b]; h != NULL; h = h->next) {
            silent_us =
                silence_is_silent(&h->silence) ? MAX(silent_us, h->silence.since_us) : silent_us;
        }
    }
    for (size_t b = 0; b < HOST_BUCKETS; b++) {
        for (struct host *h = hs->buckets[b]; h != NULL; h = h->next) {
            h->answers = !silence_is_silent(&h->silence) && h->silence.heard_us > silent_us;
        }
    }
}

static void look(struct hosts *hs, bool rows_left, int64_t now_us)
{
    struct network_census c = {0};
    for (size_t b = 0; b < HOST_BUCKETS; b++) {
        for (struct host *h = hs->buckets[b]; h != NULL; h = h->next) {
            if (hs->network.away_us == 0) {
                silence_look(&h->silence, &hs->silence, h->open_n, now_us);
            }
            count_in(hs, h, now_us, &c);
        }
    }
    if (network_look(&hs->network, &c, rows_left && hs->heard_us != 0, now_us)) {
        note_answers(hs);
    }
}

int64_t hosts_look(struct hosts *hs, bool rows_left, int64_t now_us)
{
    (void)pthread_mutex_lock(&hs->lock);
    if (now_us >= hs->look_us) {
        look(hs, rows_left, now_us);
        hs->look_us = now_us + HOSTS_LOOK_US;
    }
    int64_t away_us = hs->network.away_us;
    (void)pthread_mutex_unlock(&hs->lock);
    return away_us != 0 ? MAX(now_us - away_us, (int64_t)1) : 0;
}

bool hosts_network_is_away(struct hosts *hs)
{
    (void)pthread_mutex_lock(&hs->lock);
    bool away = hs->network.away_us != 0;
    (void)pthread_mutex_unlock(&hs->lock);
    return away;
}

bool hosts_is_still(struct hosts *hs, int64_t now_us)
{
    (void)pthread_mutex_lock(&hs->lock);
    bool still = hs->heard_us != 0 && now_us - hs->heard_us > STILL_US;
    (void)pthread_mutex_unlock(&hs->lock);
    return still;
}

bool hosts_may_begin(struct hosts *hs, int64_t now_us)
{
    (void)pthread_mutex_lock(&hs->lock);
    bool may = network_may_ask(&hs->network, now_us);
    (void)pthread_mutex_unlock(&hs->lock);
    return may;
}

void hosts_count(struct hosts *hs, struct hosts_parked *ret)
{
    (void)pthread_mutex_lock(&hs->lock);
    *ret = (struct hosts_parked){.n = hs->parked_n, .bytes = hs->parked_bytes};
    for (size_t b = 0; b < HOST_BUCKETS; b++) {
        for (const struct host *h = hs->buckets[b]; h != NULL; h = h->next) {
            bool silent = silence_is_silent(&h->silence);
            ret->silent_n += silent ? h->parked_n : 0;
            if (!silent && h->parked_n > ret->most) {
                ret->most = h->parked_n;
                (void)snprintf(ret->most_name, sizeof ret->most_name, "%s", h->name);
            }
        }
    }
    (void)pthread_mutex_unlock(&hs->lock);
}

size_t hosts_parked(struct hosts *hs)
{
    (void)pthread_mutex_lock(&hs->lock);
    size_t n = hs->parked_n;
    (void)pthread_mutex_unlock(&hs->lock);
    return n;
}

bool hosts_is_full(struct hosts *hs)
{
    (void)pthread_mutex_lock(&hs->lock);
    bool full = hs->parked_bytes >= HOSTS_PARKED_BYTES_MAX;
    (void)pthread_mutex_unlock(&hs->lock);
    return full;
}
