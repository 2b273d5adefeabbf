/* Adds up what the hosts of a part report. */
#include "progress_hosts.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "worker_protocol.h"
#include <math.h>
#include <stdio.h>

#define PREFIX    "_progress-"
#define BYTES_MAX 4096

void progress_hosts_key(int host, char out[static PROGRESS_HOSTS_KEY_BYTES])
{
    (void)snprintf(out, PROGRESS_HOSTS_KEY_BYTES, host == 0 ? WP_PROGRESS_KEY : PREFIX "%d.json",
                   host);
}

bool progress_hosts_is_key(const char *name)
{
    size_t at = strlen(PREFIX);
    size_t digits = strncmp(name, PREFIX, at) == 0 ? strspn(name + at, "0123456789") : 0;
    return digits > 0 && strlen(name) < PROGRESS_HOSTS_KEY_BYTES &&
           strcmp(name + at + digits, ".json") == 0;
}

static void copy(const struct progress *p, struct progress *ret)
{
    ret->rows_in = p->rows_in;
    ret->rows_kept = p->rows_kept;
    ret->shards_in = p->shards_in;
    ret->shards_done = p->shards_done;
    ret->successes = p->successes;
    ret->failed_to_download = p->failed_to_download;
    ret->failed_to_resize = p->failed_to_resize;
    ret->bytes = p->bytes;
    ret->fetched = p->fetched;
    ret->transfers = p->transfers;
    ret->waiting = p->waiting;
    ret->waiting_silent = p->waiting_silent;
    ret->waiting_one = p->waiting_one;
    ret->network_away = p->network_away;
    ret->unsupported = p->unsupported;
}

static int64_t number(const json_t *o, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(o, key));
    return n > 0 ? (int64_t)n : 0;
}

static void add(const json_t *o, struct progress *ret, struct progress_report_view *v)
{
    ret->shards_done += number(o, "shards_done");
    ret->successes += number(o, "successes");
    ret->failed_to_download += number(o, "failed_to_download");
    ret->failed_to_resize += number(o, "failed_to_resize");
    ret->bytes += number(o, "bytes");
    ret->fetched += number(o, "bytes_fetched");
    ret->transfers += number(o, "transfers");
    ret->waiting += number(o, "rows_waiting");
    ret->waiting_silent += number(o, "rows_waiting_for_silent_hosts");
    ret->waiting_one += number(o, "rows_waiting_for_one_host");
    ret->network_away = ret->network_away || json_is_true(json_object_get(o, "network_away"));
    double rate = json_number_value(json_object_get(o, "rows_per_second"));
    v->rows_rate += rate > 0 ? rate : 0;
    v->memory += number(o, "memory_bytes");
}

void progress_hosts_sum(const struct progress_report_config *c, struct sink *sink,
                        struct progress *ret, struct progress_report_view *v)
{
    copy(c->progress, ret);
    for (int host = 1; host < c->hosts; host++) {
        char key[PROGRESS_HOSTS_KEY_BYTES];
        AUTO_BUF struct buf b = BUF_INIT(BYTES_MAX);
        AUTO_JSON json_t *o = NULL;
        const char *attempt;
        struct err err = ERR_INIT;
        progress_hosts_key(host, key);
        if (sink_get(sink, key, &b, &err) && json_parse(buf_str(&b), BYTES_MAX, &o, &err) &&
            json_get_str(o, "attempt", "", &attempt, &err) && strcmp(attempt, c->attempt) == 0) {
            add(o, ret, v);
        }
    }
    ret->rows_in = c->rows_all;
    ret->shards_in = c->shards_all;
    v->done = ret->successes + ret->failed_to_download + ret->failed_to_resize;
    v->total = c->rows_all;
    v->rate = v->rows_rate;
    v->eta_s = v->done >= v->total ? 0 : -1;
    if (v->eta_s < 0 && v->rate > 0) {
        double s = ceil((double)(v->total - v->done) / v->rate);
        v->eta_s = s < (double)PROGRESS_REPORT_ETA_S_MAX ? (int64_t)s : -1;
    }
}
