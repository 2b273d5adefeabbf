/* A URL's thread is the hash of its authority as written. A host spelled in two ways may be in two
 * threads, which costs one more DNS lookup. */
#include "fetch_threads.h"
#include "common/hash.h"
#include "hosts.h"
#include <sys/resource.h>

#define AUTHORITY_BYTES_MAX 300
#define ROW_OVERHEAD        512 /* the cells and the allocator's overhead */

struct fetch_threads {
    struct pipeline *run;
    struct fetch_shared shared;
    int n;
    struct fetch *at[PIPELINE_FETCH_THREADS_MAX];
    pthread_t threads[PIPELINE_FETCH_THREADS_MAX];
};

/* Raise the limit on open files to one per transfer. If that is refused, connections fail. */
static void raise_open_files(int n)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < (rlim_t)n) {
        r.rlim_cur = MIN((rlim_t)n, r.rlim_max);
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}

static void free_row(struct queue_item *i)
{
    sample_free(sample_of(i));
}

bool fetch_threads_new(struct pipeline *run, struct fetch_threads **ret, struct err *err)
{
    struct fetch_threads *l = xcalloc(1, sizeof *l);
    l->run = run;
    const struct hosts_rules rules = {
        .per_host = pipeline_host_connections(run),
        .timeout_us = run->o->timeout_s * USEC_PER_SEC,
        .patience_us = run->o->host_patience_s * USEC_PER_SEC,
        .probes_max = MAX(run->transfers / run->fetch_threads_n / FETCH_PROBES_SHARE, 1),
        .retries = run->o->retries > 0};
    l->shared.hosts = hosts_new(&rules);
    l->shared.running = run->fetch_threads_n;
    raise_open_files(run->transfers * FETCH_YIELDING_FACTOR + FETCH_FILES_SPARE);
    for (; l->n < run->fetch_threads_n; l->n++) {
        if (!fetch_new(run, l->n, &l->shared, &l->at[l->n], err)) {
            fetch_threads_free(l);
            return false;
        }
    }
    *ret = l;
    return true;
}

void fetch_threads_free(struct fetch_threads *l)
{
    if (l == NULL) {
        return;
    }
    for (int i = 0; i < l->n; i++) {
        fetch_free(l->at[i]);
    }
    hosts_free(l->shared.hosts, free_row);
    free(l);
}

void fetch_threads_start(struct fetch_threads *l)
{
    for (int i = 0; i < l->n; i++) {
        int rc = pthread_create(&l->threads[i], NULL, fetch_main, l->at[i]);
        ASSERT(rc == 0);
    }
}

void fetch_threads_join(struct fetch_threads *l)
{
    for (int i = 0; i < l->n; i++) {
        (void)pthread_join(l->threads[i], NULL);
    }
}

static int fetch_thread_of(const struct fetch_threads *l, const struct cell *url)
{
    if (l->n == 1 || url->kind != CELL_TEXT) {
        return 0;
    }
    char host[AUTHORITY_BYTES_MAX];
    size_t n = 0;
    const char *slashes = memmem(url->s.p, url->s.n, "//", 2);
    size_t i = slashes != NULL ? (size_t)(slashes - url->s.p) + 2 : 0;
    for (; i < url->s.n && n < sizeof host && strchr("/?#\\", url->s.p[i]) == NULL; i++) {
        char c = url->s.p[i];
        host[n++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return (int)(hash_crc32(host, n) % (unsigned)l->n);
}

bool fetch_threads_push(struct fetch_threads *l, struct sample *s)
{
    int i = fetch_thread_of(l, &s->cells[l->run->columns->url_i]);
    if (!queue_push(l->run->queue_rows[i], &s->item, sizeof *s + ROW_OVERHEAD + s->text_n)) {
        return false;
    }
    fetch_wake(l->at[i], false);
    return true;
}

void fetch_threads_close(struct fetch_threads *l)
{
    for (int i = 0; i < l->n; i++) {
        queue_close(l->run->queue_rows[i]);
    }
    fetch_threads_wake(l);
}

void fetch_threads_wake(struct fetch_threads *l)
{
    for (int i = 0; i < l->n; i++) {
        fetch_wake(l->at[i], true);
    }
}

void fetch_threads_release(struct fetch_threads *l, int fetch_thread, size_t n)
{
    ASSERT(fetch_thread >= 0 && fetch_thread < l->n);
    fetch_release(l->at[fetch_thread], n);
}
