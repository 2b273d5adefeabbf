/* Campaigns as plain pages, for browsers without JavaScript: the list, and one page a campaign.
 * They show what GET /v1/campaigns answers, by the same tokens and sessions. What people wrote is
 * escaped. */
#include "api/server/html.h"
#include "api/server/paging.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "common/clock.h"
#include "common/json.h"
#include "guidance.h"
#include "store/api/campaigns.h"

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s == NULL ? "" : s;
}

static long long number_of(const json_t *o, const char *key)
{
    return (long long)json_integer_value(json_object_get(o, key));
}

static void cell(struct buf *b, const char *text)
{
    buf_add_cstr(b, "<td>");
    html_text(b, text);
    buf_add_cstr(b, "</td>");
}

static bool page_end(struct api_req *r)
{
    html_end(&r->out);
    r->status = 200;
    r->content_type = "text/html; charset=utf-8";
    reply_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    return true;
}

/* Why nothing of it runs, or why it is in its state; "" when there is nothing to say. */
static const char *why(const json_t *c)
{
    const char *waits = text_of(c, "waits_for");
    const char *reason = text_of(c, "reason");
    const json_t *first = json_array_get(json_object_get(c, "guidance"), 0);
    return waits[0] != '\0' ? waits : reason[0] != '\0' ? reason : text_of(first, "title");
}

/* "75 % (96 of 128, 3 failed)" */
static void progress_cell(struct buf *b, const json_t *parts)
{
    long long total = number_of(parts, "total"), failed = number_of(parts, "failed");
    long long done = number_of(parts, "done") + number_of(parts, "skipped");
    buf_addf(b, "<td>%lld %% (%lld of %lld", total > 0 ? done * 100 / total : 0, done, total);
    if (failed > 0) {
        buf_addf(b, ", %lld failed", failed);
    }
    buf_add_cstr(b, ")</td>");
}

static void add_usd(struct buf *b, long long musd)
{
    long long cents = (musd + 5000) / 10000;
    buf_addf(b, "%lld.%02lld", cents / 100, cents % 100);
}

/* "12.30 of 900.00 USD" */
static void cost_cell(struct buf *b, const json_t *budget)
{
    buf_add_cstr(b, "<td>");
    add_usd(b, number_of(budget, "spent_micro_usd"));
    if (json_is_integer(json_object_get(budget, "limit_micro_usd"))) {
        buf_add_cstr(b, " of ");
        add_usd(b, number_of(budget, "limit_micro_usd"));
    }
    buf_add_cstr(b, " USD</td>");
}

static void campaign_row(struct buf *b, const json_t *c)
{
    const char *id = text_of(c, "id");
    buf_addf(b, "<tr><td><a href=\"/plain/c/%s\">%s</a></td>", id, id);
    cell(b, text_of(c, "name"));
    cell(b, text_of(c, "project"));
    cell(b, text_of(c, "state"));
    cell(b, why(c));
    progress_cell(b, json_object_get(c, "parts"));
    cost_cell(b, json_object_get(c, "budget"));
    buf_add_cstr(b, "</tr>\n");
}

static void list_page(struct api_req *r, const json_t *rows, const char *next)
{
    struct buf *b = &r->out;
    size_t i;
    json_t *row;
    html_begin(b, "Campaigns");
    if (json_array_size(rows) == 0) {
        buf_add_cstr(b, "<p>No campaign is here. drover submit campaign.yaml makes one.</p>\n");
    } else {
        buf_add_cstr(b, "<table><thead><tr><th>Campaign</th><th>Name</th><th>Project</th>"
                        "<th>State</th><th>Why</th><th>Progress</th><th>Cost</th></tr></thead>\n"
                        "<tbody>\n");
        json_array_foreach((json_t *)(uintptr_t)rows, i, row)
        {
            campaign_row(b, row);
        }
        buf_add_cstr(b, "</tbody></table>\n");
    }
    if (next != NULL) {
        buf_addf(b, "<p><a href=\"/plain?page_token=%s\">older campaigns</a></p>\n", next);
    }
}

bool plain_list(struct api_req *r, struct err *err)
{
    int64_t n = req_number(r, "page_size"), key[2] = {0, INT64_MAX};
    bool given;
    AUTO_JSON json_t *rows = NULL;
    if (!page_token_read(r, key, 2, &given, err) || !req_db(r, err)) {
        return false;
    }
    const struct apidb_campaign_query q = {
        .after_us = given ? key[0] : clock_wall_us() + 366 * 24 * 3600 * USEC_PER_SEC,
        .after_id = key[1],
        .down = true,
        .projects = r->who.projects,
        .n = n};
    struct apidb_page page = {.rows = BUF_INIT(API_ANSWER_MAX)};
    AUTO_BUF struct buf json = BUF_INIT(API_ANSWER_MAX);
    bool ok = apidb_campaign_list(r->db, &q, guidance_out, &page, err);
    if (ok) {
        const int64_t last[2] = {page.last_us, page.last_id};
        buf_addf(&json, "[%s]", buf_cstr(&page.rows));
        ok = json_parse(buf_str(&json), API_ANSWER_MAX, &rows, err);
        if (ok) {
            list_page(r, rows, page.n == n ? page_token_make(r, last, 2) : NULL);
        }
    }
    buf_done(&page.rows);
    return ok && page_end(r);
}

static void stage_row(struct buf *b, const json_t *stage)
{
    static const char *const counts[] = {"waiting", "active",  "held",     "done",
                                         "failed",  "skipped", "cancelled"};
    const json_t *parts = json_object_get(stage, "parts");
    const char *reason = text_of(stage, "reason");
    buf_add_cstr(b, "<tr>");
    cell(b, text_of(stage, "name"));
    cell(b, text_of(stage, "state"));
    cell(b, reason[0] != '\0' ? reason : text_of(stage, "wait_text"));
    progress_cell(b, parts);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        buf_addf(b, "<td>%lld</td>", number_of(parts, counts[i]));
    }
    buf_add_cstr(b, "</tr>\n");
}

/* What people should know, and the command lines that help. */
static void guidance_list(struct buf *b, const json_t *guidance)
{
    size_t i, k;
    json_t *g, *step;
    json_array_foreach((json_t *)(uintptr_t)guidance, i, g)
    {
        buf_add_cstr(b, "<h2>");
        html_text(b, text_of(g, "title"));
        buf_add_cstr(b, "</h2>\n<p>");
        html_text(b, text_of(g, "text"));
        buf_add_cstr(b, "</p>\n");
        json_array_foreach(json_object_get(g, "steps"), k, step)
        {
            if (text_of(step, "command")[0] != '\0') {
                buf_add_cstr(b, "<pre>");
                html_text(b, text_of(step, "command"));
                buf_add_cstr(b, "</pre>\n");
            }
        }
    }
}

static void campaign_page(struct buf *b, const json_t *c)
{
    size_t i;
    json_t *stage;
    html_begin(b, text_of(c, "name"));
    buf_add_cstr(b, "<p><a href=\"/plain\">All campaigns</a></p>\n"
                    "<table><thead><tr><th>Campaign</th><th>Project</th><th>State</th><th>Why</th>"
                    "<th>Progress</th><th>Cost</th></tr></thead>\n<tbody><tr>");
    cell(b, text_of(c, "id"));
    cell(b, text_of(c, "project"));
    cell(b, text_of(c, "state"));
    cell(b, why(c));
    progress_cell(b, json_object_get(c, "parts"));
    cost_cell(b, json_object_get(c, "budget"));
    buf_add_cstr(b, "</tr></tbody></table>\n");
    guidance_list(b, json_object_get(c, "guidance"));
    buf_add_cstr(b, "<h2>Stages</h2>\n<table><thead><tr><th>Stage</th><th>State</th><th>Why</th>"
                    "<th>Progress</th><th>Waiting</th><th>Active</th><th>Held</th><th>Done</th>"
                    "<th>Failed</th><th>Skipped</th><th>Cancelled</th></tr></thead>\n<tbody>\n");
    json_array_foreach(json_object_get(c, "stages"), i, stage)
    {
        stage_row(b, stage);
    }
    buf_add_cstr(b, "</tbody></table>\n");
}

bool plain_campaign(struct api_req *r, struct err *err)
{
    int64_t version;
    AUTO_JSON json_t *c = NULL;
    AUTO_BUF struct buf json = BUF_INIT(API_ANSWER_MAX);
    if (!req_db(r, err) ||
        !apidb_campaign_get(r->db, req_id(r, 0), guidance_out, &version, &json, err) ||
        !json_parse(buf_str(&json), API_ANSWER_MAX, &c, err)) {
        return false;
    }
    campaign_page(&r->out, c);
    return page_end(r);
}
