/* What the hosts of one part tell each other, through the output folder. */
#include "part_hosts.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/json.h"
#include "common/log.h"
#include "job/manifest.h"
#include "job/progress_hosts.h"
#include "resume.h"
#include "worker_protocol.h"
#include <stdio.h>
#include <time.h>

#define PREFIX        "_host-"
#define KEY_BYTES     96
#define ATTEMPT_BYTES 40
#define POLL_US       (2 * USEC_PER_SEC)
#define NAP_NS        50000000

struct host_report { /* by a host */
    bool there;
    struct stats stats;
    usec_t started_us;
    uint32_t progress; /* CRC of its progress when it last changed ... */
    int64_t heard_us;  /* ... monotonic */
};
struct part_hosts {
    const struct pipeline *run;
    const struct sagemaker_container_hosts *hosts;
    const char *task;
    char attempt[ATTEMPT_BYTES]; /* with a dash, or empty */
    struct sink *sink;
    struct host_report *told; /* told[hosts->n] */
};

bool part_hosts_new(const struct pipeline *run, const struct sagemaker_container_hosts *hosts,
                    const char *task, const char *attempt, struct part_hosts **ret, struct err *err)
{
    struct part_hosts *h = xcalloc(1, sizeof *h);
    size_t digits = strspn(attempt, "0123456789");
    h->run = run;
    h->hosts = hosts;
    h->task = task;
    if (digits > 0 && attempt[digits] == '\0' && digits < 20) {
        (void)snprintf(h->attempt, sizeof h->attempt, "%s-", attempt);
    }
    h->told = xcalloc((size_t)hosts->n, sizeof *h->told);
    if (!sink_open(run->o->output_folder, &h->sink, err)) {
        part_hosts_free(h);
        return false;
    }
    sink_be_patient(h->sink, run->o->s3_patience_s * USEC_PER_SEC);
    *ret = h;
    return true;
}

void part_hosts_forget(struct part_hosts *h)
{
    for (int i = 0; i < h->hosts->n; i++) {
        stats_done(&h->told[i].stats);
        h->told[i].there = false;
    }
}

void part_hosts_free(struct part_hosts *h)
{
    if (h == NULL) {
        return;
    }
    part_hosts_forget(h);
    free(h->told);
    sink_free(h->sink);
    free(h);
}

struct sink *part_hosts_sink(struct part_hosts *h)
{
    return h->sink;
}

static void key_of(const struct part_hosts *h, int host, char out[static KEY_BYTES])
{
    (void)snprintf(out, KEY_BYTES, PREFIX "%s%d-of-%d.json", h->attempt, host, h->hosts->n);
}

bool part_hosts_begin(struct part_hosts *h, struct err *err)
{
    char key[KEY_BYTES];
    key_of(h, h->run->host, key);
    return sink_delete(h->sink, key, err);
}

bool part_hosts_put(struct part_hosts *h, struct stats *total, usec_t started_us, struct err *err)
{
    char key[KEY_BYTES];
    AUTO_BUF struct buf stats = BUF_INIT(STATS_FILE_BYTES_MAX);
    AUTO_BUF struct buf b = BUF_INIT(PART_HOSTS_BYTES_MAX);
    struct json_out w;
    stats_json(total, &stats);
    json_out_init(&w, &b);
    json_out_object(&w, NULL);
    json_out_i64(&w, "version", WP_VERSION);
    json_out_str(&w, "task", h->task);
    json_out_str(&w, "host", h->hosts->names[h->run->host]);
    json_out_i64(&w, "started_us", started_us);
    json_out_raw(&w, "stats", buf_str(&stats));
    json_out_end_object(&w);
    key_of(h, h->run->host, key);
    if (stats.overflow || b.overflow) {
        return err_set(err, ERR_LIMIT, "'%s' is longer than %zu bytes", key, b.max);
    }
    return sink_put(h->sink, key, buf_str(&b), "application/json", false, err);
}

/* Take what a host has said, unless it is about another task or other shards. */
static bool take(struct part_hosts *h, int host, struct str text, struct err *err)
{
    AUTO_JSON json_t *v = NULL;
    json_t *dict;
    const char *task;
    usec_t started_us;
    struct stats s;
    int64_t shards;
    if (!json_parse(text, PART_HOSTS_BYTES_MAX, &v, err) ||
        !json_get_str(v, "task", "", &task, err) ||
        !json_get_i64(v, "started_us", 0, INT64_MAX, JSON_ABSENT, &started_us, err) ||
        !json_get_object(v, "stats", &dict, err)) {
        return false;
    }
    AUTO_FREE char *stats = json_dumps(dict, JSON_COMPACT);
    if (!stats_parse(str_of(stats), &s, err)) {
        return false;
    }
    if (strcmp(task, h->task) != 0 || s.count != pipeline_rows_of(h->run, host, &shards)) {
        stats_done(&s);
        return true;
    }
    h->told[host].there = true;
    h->told[host].stats = s;
    h->told[host].started_us = started_us;
    return true;
}

bool part_hosts_collect(struct part_hosts *h, bool *ret_all, struct err *err)
{
    *ret_all = true;
    for (int i = 0; i < h->hosts->n; i++) {
        char key[KEY_BYTES];
        AUTO_BUF struct buf b = BUF_INIT(PART_HOSTS_BYTES_MAX);
        struct err e = ERR_INIT;
        if (h->told[i].there) {
            continue;
        }
        key_of(h, i, key);
        if (sink_get(h->sink, key, &b, &e)) {
            if (!take(h, i, buf_str(&b), err)) {
                return err_wrap(err, "'%s'", key);
            }
        } else if (e.code != ERR_NOT_FOUND) {
            *err = e;
            return false;
        }
        *ret_all = *ret_all && h->told[i].there;
    }
    return true;
}

/* A host lives while its progress changes. No clock of another host is compared with ours. */
static void note_progress(struct part_hosts *h, int host, int64_t now_us)
{
    struct host_report *t = &h->told[host];
    char key[PROGRESS_HOSTS_KEY_BYTES];
    AUTO_BUF struct buf b = BUF_INIT(1u << 16);
    struct err e = ERR_INIT;
    progress_hosts_key(host, key);
    uint32_t sum = sink_get(h->sink, key, &b, &e) ? hash_crc32(b.p, b.n) : t->progress;
    if (sum != t->progress || t->heard_us == 0) {
        t->progress = sum;
        t->heard_us = now_us;
    }
}

static bool gone(struct part_hosts *h, int host, int64_t silent_s, struct err *err)
{
    int64_t missing;
    int64_t shards;
    int64_t rows = pipeline_rows_of(h->run, host, &shards);
    if (!resume_missing(h->sink, h->run, host, &missing, err)) {
        return false;
    }
    return err_set(err, ERR_UNAVAILABLE,
                   "host '%s' (%d of %d) has reported no progress for %lld seconds: %lld of its "
                   "%lld shards (%lld rows) are missing; all finished shards are kept, run every "
                   "host again to go on",
                   h->hosts->names[host], host + 1, h->hosts->n, (long long)silent_s,
                   (long long)missing, (long long)shards, (long long)rows);
}

static bool all_alive(struct part_hosts *h, struct err *err)
{
    int64_t now_us = clock_mono_us();
    int64_t patience_s = h->run->o->hosts_patience_s;
    for (int i = 0; i < h->hosts->n; i++) {
        if (h->told[i].there) {
            continue;
        }
        note_progress(h, i, now_us);
        int64_t silent_us = now_us - h->told[i].heard_us;
        if (silent_us >= patience_s * USEC_PER_SEC) {
            return gone(h, i, silent_us / USEC_PER_SEC, err);
        }
    }
    return true;
}

bool part_hosts_ended(struct part_hosts *h)
{
    AUTO_JSON json_t *manifest = NULL;
    struct err e = ERR_INIT;
    return manifest_load(h->sink, &manifest, &e) && manifest_is_of(manifest, h->task);
}

bool part_hosts_wait(struct part_hosts *h, struct err *err)
{
    bool all = false;
    bool told = false;
    while (!pipeline_stopping(h->run)) {
        int64_t next_us = clock_mono_us() + POLL_US;
        if (!part_hosts_collect(h, &all, err)) {
            return false;
        }
        if (all || part_hosts_ended(h)) {
            return true;
        }
        if (!all_alive(h, err)) {
            return false;
        }
        if (!told) {
            log_event(LOG_INFO, "waiting_for_hosts", LF_I("hosts", h->hosts->n));
            told = true;
        }
        while (!pipeline_stopping(h->run) && clock_mono_us() < next_us) {
            const struct timespec nap = {0, NAP_NS};
            (void)nanosleep(&nap, NULL);
        }
    }
    return true;
}

void part_hosts_total(const struct part_hosts *h, struct stats *ret, usec_t *ret_started_us)
{
    *ret = (struct stats){0};
    *ret_started_us = h->told[0].started_us;
    for (int i = 0; i < h->hosts->n; i++) {
        ASSERT(h->told[i].there);
        stats_merge(ret, &h->told[i].stats);
        *ret_started_us = MIN(*ret_started_us, h->told[i].started_us);
    }
}

void part_hosts_clean(struct sink *sink, int host, bool late)
{
    char own[PROGRESS_HOSTS_KEY_BYTES];
    progress_hosts_key(host, own);
    struct sink_listing l = {0};
    struct err err = ERR_INIT;
    bool ok = sink_list(sink, &l, &err);
    for (size_t i = 0; ok && i < l.n; i++) {
        const char *name = l.objects[i].name;
        bool progress =
            progress_hosts_is_key(name) && (host == 0 || (late && strcmp(name, own) == 0));
        bool host_s = strlen(name) < KEY_BYTES && str_starts(str_of(name), PREFIX) &&
                      str_ends(str_of(name), ".json");
        if (progress || host_s) {
            ok = sink_delete(sink, name, &err);
        }
    }
    sink_listing_done(&l);
    ok = ok && sink_sweep(sink, &err);
    if (!ok) {
        log_event(LOG_WARN, "files_of_hosts_not_removed", LF_ERR(&err));
    }
}
