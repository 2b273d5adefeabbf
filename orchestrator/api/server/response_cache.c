/* See response_cache.h. A full cache drops its oldest answer. */
#include "response_cache.h"
#include "common/clock.h"
#include "common/hash.h"
#include <pthread.h>

#define ANSWERS_N   64
#define COST_FACTOR 10
#define CHEAP_US    20000 /* cheaper answers are not cached longer than fresh_us */

struct cached_answer {
    char key[RESPONSE_CACHE_KEY_MAX];
    uint64_t version;
    int64_t at_us, cost_us;
    char *json; /* NULL: empty */
};
struct response_cache {
    pthread_mutex_t lock;
    struct cached_answer at[ANSWERS_N];
    pthread_mutex_t turn;
};

struct response_cache *response_cache_new(void)
{
    struct response_cache *c = xcalloc(1, sizeof *c);
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_mutex_init(&c->turn, NULL);
    return c;
}

void response_cache_free(struct response_cache *c)
{
    if (c == NULL) {
        return;
    }
    for (size_t i = 0; i < ANSWERS_N; i++) {
        free(c->at[i].json);
    }
    (void)pthread_mutex_destroy(&c->lock);
    (void)pthread_mutex_destroy(&c->turn);
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

char *response_cache_get(struct response_cache *c, const char *key, uint64_t version,
                         int64_t fresh_us, int64_t same_us)
{
    int64_t now = clock_mono_us();
    char *found = NULL;
    (void)pthread_mutex_lock(&c->lock);
    const struct cached_answer *a = find(c, key);
    if (a != NULL) {
        int64_t age = now - a->at_us;
        int64_t dear_us = a->cost_us < CHEAP_US ? 0 : COST_FACTOR * a->cost_us;
        bool stands = age < MAX(fresh_us, dear_us);
        if (stands || (a->version == version && age < same_us)) {
            found = xstrdup(a->json);
        }
    }
    (void)pthread_mutex_unlock(&c->lock);
    return found;
}

uint64_t response_cache_version(const void *p, size_t n)
{
    uint8_t sha[32];
    uint64_t ret;
    hash_sha256(p, n, sha);
    memcpy(&ret, sha, sizeof ret);
    return ret;
}

void response_cache_put(struct response_cache *c, const char *key, uint64_t version,
                        int64_t cost_us, const char *json)
{
    ASSERT(strlen(key) < RESPONSE_CACHE_KEY_MAX);
    (void)pthread_mutex_lock(&c->lock);
    struct cached_answer *to = find(c, key);
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
    *to = (struct cached_answer){
        .version = version, .at_us = clock_mono_us(), .cost_us = cost_us, .json = xstrdup(json)};
    memcpy(to->key, key, strlen(key) + 1);
    (void)pthread_mutex_unlock(&c->lock);
}

void response_cache_turn(struct response_cache *c)
{
    (void)pthread_mutex_lock(&c->turn);
}

void response_cache_turn_end(struct response_cache *c)
{
    (void)pthread_mutex_unlock(&c->turn);
}
