/* Counting texts by a small open-addressing table; when there are too many, the rarer half is
 * dropped, as img2dataset's CappedCounter does. */
#include "stats.h"
#include "common/hash.h"
#include "common/json.h"

void stats_done(struct stats *s)
{
    for (size_t i = 0; i < s->texts_n; i++) {
        free(s->texts[i].text);
    }
    free(s->texts);
    free(s->slots_);
    *s = (struct stats){0};
}

const char *stats_status_name(enum sample_status status)
{
    switch (status) {
    case STATUS_SUCCESS:
        return "success";
    case STATUS_FAILED_TO_DOWNLOAD:
        return "failed_to_download";
    case STATUS_FAILED_TO_RESIZE:
        return "failed_to_resize";
    }
    return "";
}

/* The slot where the text is or would go. */
static size_t slot_of(const struct stats *s, const char *text)
{
    ASSERT(s->slots_n_ > 0);
    size_t i = hash_crc32(text, strlen(text)) & (s->slots_n_ - 1);
    while (s->slots_[i] != 0 && strcmp(s->texts[s->slots_[i] - 1].text, text) != 0) {
        i = (i + 1) & (s->slots_n_ - 1);
    }
    return i;
}

static void rehash(struct stats *s, size_t slots_n)
{
    free(s->slots_);
    s->slots_ = xcalloc(slots_n, sizeof *s->slots_);
    s->slots_n_ = slots_n;
    for (size_t i = 0; i < s->texts_n; i++) {
        s->slots_[slot_of(s, s->texts[i].text)] = (uint32_t)(i + 1);
    }
}

static void drop_rarer(struct stats *s)
{
    stats_sort(s);
    while (s->texts_n > STATS_TEXTS_MAX / 2 || s->texts_bytes > STATS_TEXTS_BYTES_MAX / 2) {
        struct stats_text *last = &s->texts[--s->texts_n];
        s->texts_bytes -= strlen(last->text);
        free(last->text);
    }
    rehash(s, s->slots_n_);
}

static void add_text(struct stats *s, const char *text, int64_t n)
{
    if (s->texts_n >= STATS_TEXTS_MAX || s->texts_bytes >= STATS_TEXTS_BYTES_MAX) {
        drop_rarer(s);
    }
    if ((s->texts_n + 1) * 2 > s->slots_n_) {
        rehash(s, MAX(s->slots_n_ * 2, 16));
    }
    size_t slot = slot_of(s, text);
    if (s->slots_[slot] == 0) {
        ARRAY_ROOM(s->texts, s->texts_n, s->texts_cap);
        s->texts[s->texts_n++] = (struct stats_text){xstrdup(text), 0};
        s->texts_bytes += strlen(text);
        s->slots_[slot] = (uint32_t)s->texts_n;
    }
    s->texts[s->slots_[slot] - 1].n += n;
}

void stats_add(struct stats *s, enum sample_status status, const char *text)
{
    s->count++;
    switch (status) {
    case STATUS_SUCCESS:
        s->successes++;
        break;
    case STATUS_FAILED_TO_DOWNLOAD:
        s->failed_to_download++;
        break;
    case STATUS_FAILED_TO_RESIZE:
        s->failed_to_resize++;
        break;
    }
    add_text(s, text, 1);
}

void stats_merge(struct stats *s, const struct stats *from)
{
    s->count += from->count;
    s->successes += from->successes;
    s->failed_to_download += from->failed_to_download;
    s->failed_to_resize += from->failed_to_resize;
    for (size_t i = 0; i < from->texts_n; i++) {
        add_text(s, from->texts[i].text, from->texts[i].n);
    }
}

static int text_cmp(const void *a, const void *b)
{
    const struct stats_text *x = a;
    const struct stats_text *y = b;
    if (x->n != y->n) {
        return x->n > y->n ? -1 : 1;
    }
    return strcmp(x->text, y->text);
}

void stats_sort(struct stats *s)
{
    if (s->texts_n > 1) {
        qsort(s->texts, s->texts_n, sizeof *s->texts, text_cmp);
        rehash(s, s->slots_n_);
    }
}

void stats_json(struct stats *s, struct buf *out)
{
    stats_sort(s);
    buf_addf(out,
             "{\n    \"count\": %lld,\n    \"successes\": %lld,\n    \"failed_to_download\": %lld,"
             "\n    \"failed_to_resize\": %lld,\n    \"duration\": %.6f,\n"
             "    \"start_time\": %.6f,\n    \"end_time\": %.6f,\n    \"status_dict\": {",
             (long long)s->count, (long long)s->successes, (long long)s->failed_to_download,
             (long long)s->failed_to_resize, (double)(s->end_us - s->start_us) / 1e6,
             (double)s->start_us / 1e6, (double)s->end_us / 1e6);
    for (size_t i = 0; i < s->texts_n; i++) {
        buf_add_cstr(out, i == 0 ? "\n        " : ",\n        ");
        json_escape(out, str_of(s->texts[i].text), true);
        buf_addf(out, ": %lld", (long long)s->texts[i].n);
    }
    buf_add_cstr(out, s->texts_n > 0 ? "\n    }\n}" : "}\n}");
}

bool stats_parse(struct str text, struct stats *ret, struct err *err)
{
    AUTO_JSON json_t *v = NULL;
    json_t *dict;
    struct stats s = {0};
    if (!json_parse(text, STATS_FILE_BYTES_MAX, &v, err) ||
        !json_get_i64(v, "count", 0, INT64_MAX, JSON_ABSENT, &s.count, err) ||
        !json_get_i64(v, "successes", 0, INT64_MAX, JSON_ABSENT, &s.successes, err) ||
        !json_get_i64(v, "failed_to_download", 0, INT64_MAX, JSON_ABSENT, &s.failed_to_download,
                      err) ||
        !json_get_i64(v, "failed_to_resize", 0, INT64_MAX, JSON_ABSENT, &s.failed_to_resize, err) ||
        !json_get_object(v, "status_dict", &dict, err)) {
        return false;
    }
    const char *key;
    json_t *n;
    json_object_foreach(dict, key, n)
    {
        if (!json_is_integer(n) || json_integer_value(n) < 0) {
            stats_done(&s);
            return err_set(err, ERR_MALFORMED, "status_dict: '%s' is not a count", key);
        }
        add_text(&s, key, json_integer_value(n));
    }
    *ret = s;
    return true;
}
