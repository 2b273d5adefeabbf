/* Error texts come from servers, so they are stripped of control characters. */
#include "summary.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/log_people.h"
#include "job/progress_bar.h"
#include "second_pass.h"
#include <math.h>

#define COUNT_COLUMNS 13
#define TEXT_MARGIN   (COUNT_COLUMNS + 3)
#define GO_ON         "Run the same command again to go on."
#define GO_ON_KEEPING "Run it again without --incremental_mode to go on; with it, it starts again."

static void add_count(struct buf *b, int64_t n, int width)
{
    char text[PROGRESS_BAR_TEXT_BYTES];
    progress_bar_count(n, text);
    buf_addf(b, "%*s", width, text);
}

static double percent(int64_t n, int64_t of)
{
    return of > 0 ? 100.0 * (double)n / (double)of : 0;
}

static void add_outcome(struct buf *b, int64_t n, int64_t of, const char *what)
{
    add_count(b, n, COUNT_COLUMNS);
    buf_addf(b, "  %s (%.1f %%)\n", what, percent(n, of));
}

static bool is_failure(const struct stats_text *t)
{
    return strcmp(t->text, "success") != 0;
}

/* Bytes of the first `columns` characters. */
static size_t bytes_of(struct str s, size_t columns)
{
    size_t at = 0;
    for (size_t n = 0; at < s.n && n < columns; n++) {
        at++;
        while (at < s.n && ((uint8_t)s.p[at] & 0xc0) == 0x80) {
            at++;
        }
    }
    return at;
}

static void add_cut(struct buf *b, const char *text, size_t columns)
{
    AUTO_BUF struct buf clean = BUF_INIT(SUMMARY_BYTES_MAX);
    log_add_printable(&clean, str_of(text));
    bool cut = bytes_of(buf_str(&clean), columns) < clean.n;
    size_t n = bytes_of(buf_str(&clean), cut ? columns - 3 : columns);
    buf_addf(b, "%.*s%s", (int)n, buf_cstr(&clean), cut ? "..." : "");
}

static void add_failures(const struct summary *s, int width, struct buf *out)
{
    int64_t others = 0;
    size_t named = 0;
    size_t left = 0;
    for (size_t i = 0; i < s->total->texts_n; i++) {
        const struct stats_text *t = &s->total->texts[i];
        if (!is_failure(t)) {
            continue;
        }
        if (named == SUMMARY_TEXTS_MAX) {
            others += t->n;
            left++;
            continue;
        }
        buf_add_cstr(out, named == 0 ? "\nMost frequent failures:\n" : "");
        add_count(out, t->n, COUNT_COLUMNS);
        buf_add_cstr(out, "  ");
        add_cut(out, t->text, (size_t)(width - TEXT_MARGIN));
        buf_add_cstr(out, "\n");
        named++;
    }
    if (left > 0) {
        add_count(out, others, COUNT_COLUMNS);
        buf_addf(out, "  (%zu other texts)\n", left);
    }
}

static void add_second_pass(const struct summary *s, struct buf *out)
{
    if (s->total->failed_to_download == 0) {
        return;
    }
    if (s->second_pass == NULL) {
        buf_add_cstr(out,
                     "\nAn output of format dummy keeps no rows: no second pass is possible.\n");
        return;
    }
    buf_addf(out,
             "\nA second pass asks again for the rows that failed to download, except\n"
             "those that are gone (404, 410), forbidden or no URL:\n  %s\n",
             s->second_pass);
    if (second_pass_drops_hash(s->o)) {
        buf_addf(out,
                 "It does not check verify_hash: the output has no column '%s' (it would with\n"
                 "save_additional_columns).\n",
                 s->o->verify_col);
    }
}

void summary_text(const struct summary *s, int width, struct buf *out)
{
    const struct stats *t = s->total;
    width = MAX(width, SUMMARY_WIDTH_LEAST);
    char span[PROGRESS_BAR_TEXT_BYTES];
    progress_bar_span((int64_t)ceil(s->seconds), span);
    buf_addf(out, "\nFinished in %s.\n\n", span);
    add_count(out, t->count, COUNT_COLUMNS);
    buf_add_cstr(out, "  rows");
    if (s->rows_before > 0) {
        buf_add_cstr(out, ", of which ");
        add_count(out, s->rows_before, 0);
        buf_add_cstr(out, " by earlier runs");
    }
    buf_add_cstr(out, "\n");
    add_outcome(out, t->successes, t->count, "kept");
    add_outcome(out, t->failed_to_download, t->count, "failed to download");
    add_outcome(out, t->failed_to_resize, t->count, "failed to resize");
    add_failures(s, width, out);
    buf_addf(out, "\nOutput: %s (%s, %lld shard%s)\n", s->o->output_folder, s->o->output_format,
             (long long)s->shards, s->shards == 1 ? "" : "s");
    add_second_pass(s, out);
}

void summary_json(const struct summary *s, struct buf *out)
{
    const struct stats *t = s->total;
    struct json_out w;
    int64_t others = 0;
    size_t named = 0;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_str(&w, "event", "summary");
    json_out_i64(&w, "rows", t->count);
    json_out_i64(&w, "rows_of_earlier_runs", s->rows_before);
    json_out_i64(&w, "successes", t->successes);
    json_out_i64(&w, "failed_to_download", t->failed_to_download);
    json_out_i64(&w, "failed_to_resize", t->failed_to_resize);
    json_out_array(&w, "failures");
    for (size_t i = 0; i < t->texts_n; i++) {
        if (!is_failure(&t->texts[i])) {
            continue;
        }
        if (named++ >= SUMMARY_TEXTS_MAX) {
            others += t->texts[i].n;
            continue;
        }
        json_out_object(&w, NULL);
        json_out_str(&w, "error", t->texts[i].text);
        json_out_i64(&w, "rows", t->texts[i].n);
        json_out_end_object(&w);
    }
    json_out_end_array(&w);
    json_out_i64(&w, "other_failures", others);
    json_out_i64(&w, "shards", s->shards);
    json_out_double(&w, "seconds", s->seconds);
    json_out_str(&w, "output_folder", s->o->output_folder);
    json_out_str(&w, "output_format", s->o->output_format);
    json_out_str(&w, "second_pass", t->failed_to_download > 0 ? s->second_pass : NULL);
    json_out_end_object(&w);
    buf_add_cstr(out, "\n");
}

void summary_json_already(const struct download_options *o, struct buf *out)
{
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_str(&w, "event", "already_finished");
    json_out_str(&w, "output_folder", o->output_folder);
    json_out_end_object(&w);
    buf_add_cstr(out, "\n");
}

const char *summary_how_to_go_on(const struct download_options *o)
{
    return o->mode == MODE_OVERWRITE ? GO_ON_KEEPING : GO_ON;
}

void summary_again(const struct download_options *o, bool stopped, int64_t done, int64_t rows,
                   struct buf *out)
{
    if (done == 0 && !stopped) {
        return;
    }
    buf_add_cstr(out, stopped ? "Stopped: " : "");
    add_count(out, done, 0);
    buf_add_cstr(out, " of ");
    add_count(out, rows, 0);
    buf_addf(out, " rows are finished and kept in '%s'.\n%s\n", o->output_folder,
             summary_how_to_go_on(o));
}
