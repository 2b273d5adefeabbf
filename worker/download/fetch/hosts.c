/* A hash table of hosts. An entry lives while it says something: a transfer is open, rows are
 * parked, it failed, or it asked for a pause. Hosts with parked rows stand in a ring, and each gets
 * one row through in its turn. */
#include "hosts.h"
#include "common/hash.h"
#include <pthread.h>
#include <stdio.h>

#define BUCKETS 4096u

struct host {
    struct host *next; /* in the bucket */
    struct host *ring_next;
    int64_t open_n;
    int failed_n; /* in a row */
    int pauses_n; /* asked for in a row */
    int64_t not_before_us, down_until_us;
    struct queue_item *parked;
    struct queue_item **parked_tail;
    size_t parked_n;
    char name[];
};
struct hosts {
    pthread_mutex_t lock;
    int64_t per_host;
    size_t n, parked_n;
    struct host *ring; /* the last of the ring: ring->ring_next has the next turn; NULL: empty */
    struct host *buckets[BUCKETS];
};

struct hosts *hosts_new(int64_t per_host)
{
    ASSERT(per_host > 0);
    struct hosts *hs = xcalloc(1, sizeof *hs);
    hs->per_host = per_host;
    (void)pthread_mutex_init(&hs->lock, NULL);
    return hs;
}

void hosts_free(struct hosts *hs, void (*free_item)(struct queue_item *i))
{
    if (hs == NULL) {
        return;
    }
    for (size_t b = 0; b < BUCKETS; b++) {
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

static bool says_nothing(const struct host *h, int64_t now_us)
{
    return h->open_n == 0 && h->parked_n == 0 && h->not_before_us <= now_us && h->failed_n == 0 &&
           h->pauses_n == 0;
}

static bool is_idle(const struct host *h)
{
    return h->open_n == 0 && h->parked_n == 0;
}

/* Forget a host's past to keep the table bounded: what is open or parked stays. */
static void make_room(struct hosts *hs)
{
    for (size_t b = 0; b < BUCKETS; b++) {
        for (struct host **p = &hs->buckets[b]; *p != NULL;) {
            struct host *h = *p;
            if (is_idle(h)) {
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
    struct host **p = &hs->buckets[hash_crc32(key, strlen(key)) % BUCKETS];
    while (*p != NULL && strcmp((*p)->name, key) != 0) {
        p = &(*p)->next;
    }
    return p;
}

static void park(struct hosts *hs, struct host *h, struct queue_item *i)
{
    if (i == NULL) {
        return;
    }
    i->next = NULL;
    *h->parked_tail = i;
    h->parked_tail = &i->next;
    hs->parked_n++;
    if (h->parked_n++ > 0) {
        return;
    }
    h->ring_next = hs->ring != NULL ? hs->ring->ring_next : h;
    if (hs->ring != NULL) {
        hs->ring->ring_next = h;
    }
    hs->ring = h;
}

static struct host *host_of(struct hosts *hs, const char *name, int port)
{
    char key[HOST_NAME_BYTES_MAX];
    (void)snprintf(key, sizeof key, "%.280s:%d", name, port);
    struct host **at = slot_of(hs, key);
    if (*at == NULL) {
        if (hs->n >= HOSTS_MAX) {
            make_room(hs);
            at = slot_of(hs, key);
        }
        size_t n = strlen(key) + 1;
        struct host *made = xcalloc(1, sizeof *made + n);
        memcpy(made->name, key, n);
        made->parked_tail = &made->parked;
        *at = made;
        hs->n++;
    }
    return *at;
}

static bool is_down(const struct host *h, int64_t now_us)
{
    return h->failed_n >= HOST_DOWN_AFTER && now_us < h->down_until_us;
}

static bool is_away(const struct host *h, int64_t now_us)
{
    return h->pauses_n >= HOST_PAUSES_MAX && now_us < h->not_before_us;
}

static enum host_turn turn_of(const struct hosts *hs, const struct host *h, int64_t now_us)
{
    if (is_down(h, now_us)) {
        return HOST_DOWN;
    }
    if (now_us < h->not_before_us) {
        return is_away(h, now_us) || h->parked_n >= HOST_PAUSE_PARKED ? HOST_AWAY : HOST_REST;
    }
    return h->open_n >= hs->per_host ? HOST_WAIT : HOST_GO;
}

enum host_turn hosts_enter(struct hosts *hs, const char *name, int port, int64_t now_us,
                           struct queue_item *item, struct host **ret)
{
    (void)pthread_mutex_lock(&hs->lock);
    struct host *h = host_of(hs, name, port);
    enum host_turn turn = turn_of(hs, h, now_us);
    if (turn == HOST_GO) {
        h->open_n++;
        *ret = h;
    } else if (turn == HOST_WAIT || turn == HOST_REST) {
        park(hs, h, item);
    }
    (void)pthread_mutex_unlock(&hs->lock);
    return turn;
}

static void forget(struct hosts *hs, struct host *h)
{
    struct host **p = slot_of(hs, h->name);
    ASSERT(*p == h);
    *p = h->next;
    free(h);
    hs->n--;
}

void hosts_leave(struct hosts *hs, struct host *h, enum host_outcome outcome, int64_t now_us)
{
    (void)pthread_mutex_lock(&hs->lock);
    ASSERT(h->open_n > 0);
    h->open_n--;
    switch (outcome) {
    case HOST_ANSWERED:
        h->failed_n = 0;
        if (now_us >= h->not_before_us) {
            h->pauses_n = 0;
        }
        break;
    case HOST_FAILED:
        h->failed_n = MIN(h->failed_n + 1, HOST_DOWN_AFTER);
        h->down_until_us = now_us + HOST_DOWN_US;
        break;
    case HOST_UNDECIDED:
        break;
    }
    if (says_nothing(h, now_us)) {
        forget(hs, h);
    }
    (void)pthread_mutex_unlock(&hs->lock);
}

void hosts_pause(struct hosts *hs, struct host *h, int64_t now_us, int64_t pause_us)
{
    (void)pthread_mutex_lock(&hs->lock);
    int64_t until_us = now_us + MIN(MAX(pause_us, 0), HOST_PAUSE_MAX_US);
    if (now_us >= h->not_before_us) {
        h->pauses_n = MIN(h->pauses_n + 1, HOST_PAUSES_MAX);
    }
    h->not_before_us = MAX(h->not_before_us, until_us);
    (void)pthread_mutex_unlock(&hs->lock);
}

static bool has_turn(const struct hosts *hs, const struct host *h, int64_t now_us)
{
    return is_down(h, now_us) || is_away(h, now_us) ||
           (now_us >= h->not_before_us && h->open_n < hs->per_host);
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
        if (has_turn(hs, h, now_us)) {
            struct queue_item *i = h->parked;
            h->parked = i->next;
            hs->parked_n--;
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

size_t hosts_parked(struct hosts *hs)
{
    (void)pthread_mutex_lock(&hs->lock);
    size_t n = hs->parked_n;
    (void)pthread_mutex_unlock(&hs->lock);
    return n;
}
