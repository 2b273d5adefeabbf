/* Error texts come from servers, so they are stripped of control characters. */
#include "summary.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "job/last_words.h"
#include "second_pass.h"
#include <inttypes.h>
#include <stdio.h>

#define TEXT_MARGIN   (LAST_WORDS_COUNT + 3)
#define GO_ON_KEEPING "Run it again without --incremental_mode to go on; with it, it starts again."

static bool is_failure(const struct stats_text *t)
{
    return strcmp(t->text, "success") != 0;
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
        last_words_count(out, t->n, LAST_WORDS_COUNT);
        buf_add_cstr(out, "  ");
        last_words_cut(out, t->text, (size_t)(width - TEXT_MARGIN));
        buf_add_cstr(out, "\n");
        named++;
    }
    if (left > 0) {
        last_words_count(out, others, LAST_WORDS_COUNT);
        buf_addf(out, "  (%zu other texts)\n", left);
    }
}

/* True when a row failed to download for a reason that may pass. */
static bool has_second_pass(const struct stats *t)
{
    int64_t final = 0;
    for (size_t i = 0; i < t->texts_n; i++) {
        final += second_pass_is_final(t->texts[i].text) ? t->texts[i].n : 0;
    }
    return final < t->failed_to_download;
}

static void add_second_pass(const struct summary *s, struct buf *out)
{
    if (!has_second_pass(s->total)) {
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

void summary_line(const struct progress *p, double seconds UNUSED, double rate, struct buf *out)
{
    int64_t done = progress_rows(p);
    double n = done > 0 ? (double)done : 1.0;
    buf_addf(out,
             "worker  - success: %.3f - failed to download: %.3f - failed to resize: %.3f - "
             "images per sec: %.0f - count: %" PRIi64 " of %" PRIi64,
             (double)p->successes / n, (double)p->failed_to_download / n,
             (double)p->failed_to_resize / n, rate, done, (int64_t)p->rows_in);
    if (p->network_away) {
        buf_add_cstr(out, " - the network is down, everything waits");
    } else if (p->waiting_silent > 0) {
        buf_addf(out, " - %" PRIi64 " wait for silent hosts", (int64_t)p->waiting_silent);
    }
    if (p->waiting_one > 0 && !p->network_away) {
        buf_addf(out, " - %" PRIi64 " wait for one busy host", (int64_t)p->waiting_one);
    }
}

void summary_text(const struct summary *s, int width, struct buf *out)
{
    const struct stats *t = s->total;
    width = MAX(width, SUMMARY_WIDTH_LEAST);
    last_words_finished(out, s->seconds);
    last_words_count(out, t->count, LAST_WORDS_COUNT);
    buf_add_cstr(out, "  rows");
    if (s->rows_before > 0) {
        buf_add_cstr(out, ", of which ");
        last_words_count(out, s->rows_before, 0);
        buf_add_cstr(out, " by earlier runs");
    }
    buf_add_cstr(out, "\n");
    last_words_share(out, t->successes, t->count, "kept");
    last_words_share(out, t->failed_to_download, t->count, "failed to download");
    last_words_share(out, t->failed_to_resize, t->count, "failed to resize");
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
    json_out_str(&w, "second_pass", has_second_pass(t) ? s->second_pass : NULL);
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

void summary_tell_already(const struct download_options *o)
{
    AUTO_BUF struct buf b = BUF_INIT(SUMMARY_BYTES_MAX);
    if (o->report == PROGRESS_REPORT_JSON) {
        summary_json_already(o, &b);
        (void)fwrite(b.p, 1, b.n, stderr);
    } else {
        (void)printf("worker  - '%s' is already finished\n", o->output_folder);
    }
}

const char *summary_how_to_go_on(const struct download_options *o)
{
    return o->mode == MODE_OVERWRITE ? GO_ON_KEEPING : LAST_WORDS_GO_ON;
}

void summary_again(const struct download_options *o, bool stopped, int64_t done, int64_t rows,
                   struct buf *out)
{
    size_t before = out->n;
    last_words_again(out, stopped, done, rows, "rows", o->output_folder);
    if (out->n > before) {
        buf_addf(out, "%s\n", summary_how_to_go_on(o));
    }
}
