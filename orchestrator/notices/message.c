/* See message.h. */
#include "message.h"
#include "common/json.h"
#include <inttypes.h>

#define NAME_MAX    120 /* bytes of a name in a title */
#define TITLE_MAX   1000
#define TEXT_MAX    4000
#define COMMAND_MAX 1000

struct message_words {
    const char *type; /* in the body for programs */
    struct buf title, text, command;
};

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

static int64_t int_of(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* At most NAME_MAX bytes of a name, whole characters. */
static void add_name(struct buf *b, const char *name)
{
    size_t n = strlen(name);
    if (n > NAME_MAX) {
        for (n = NAME_MAX; ((unsigned char)name[n] & 0xc0) == 0x80; n--) {
        }
    }
    buf_add(b, name, n);
}

/* "laion-400m c-7". */
static void add_subject(struct buf *b, const json_t *facts)
{
    add_name(b, text_of(facts, "name"));
    buf_addf(b, " %s", text_of(facts, "campaign"));
}

static void add_usd(struct buf *b, int64_t musd)
{
    int64_t cents = musd / 10000 + (musd % 10000 >= 5000);
    buf_addf(b, "%" PRId64 ".%02" PRId64, cents / 100, cents % 100);
}

/* What a person reads first in `drover ls`, with the step that mends it. False: nothing is known,
 * it may have passed. */
static bool say_guidance(struct message_words *w, const json_t *facts)
{
    const json_t *item = json_array_get(json_object_get(facts, "guidance"), 0);
    const json_t *step = json_array_get(json_object_get(item, "steps"), 0);
    if (item == NULL) {
        return false;
    }
    add_subject(&w->title, facts);
    buf_addf(&w->title, ": %s", text_of(item, "title"));
    buf_addf(&w->text, "%s%s%s", text_of(item, "text"),
             text_of(item, "evidence")[0] != '\0' ? "\n" : "", text_of(item, "evidence"));
    buf_add_cstr(&w->command, text_of(step, "command"));
    return true;
}

static void say_held(struct message_words *w, const json_t *facts)
{
    if (!say_guidance(w, facts)) {
        add_subject(&w->title, facts);
        buf_add_cstr(&w->title, " was held");
        buf_addf(&w->text, "It is %s by now.", text_of(facts, "state"));
        buf_addf(&w->command, "drover get %s", text_of(facts, "campaign"));
    }
}

static void say_texts(struct buf *b, const json_t *facts)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(facts, "texts"), i, one)
    {
        buf_addf(b, "%s%s", i > 0 ? "\n" : "", json_string_value(one));
    }
}

static void say_late(struct message_words *w, const json_t *facts)
{
    add_subject(&w->title, facts);
    buf_addf(&w->title, " is late: its deadline was %s", text_of(facts, "late_since"));
    buf_add_cstr(&w->text, "Nothing is stopped by a deadline: it goes on.");
    buf_addf(&w->command, "drover deadline %s", text_of(facts, "campaign"));
}

static void say_stuck(struct message_words *w, const json_t *facts)
{
    if (text_of(facts, "late_since")[0] != '\0') {
        say_late(w, facts);
    } else if (!say_guidance(w, facts)) {
        add_subject(&w->title, facts);
        buf_add_cstr(&w->title, " could not go on for a while");
        say_texts(&w->text, facts);
        buf_addf(&w->command, "drover get %s", text_of(facts, "campaign"));
    } else if (text_of(facts, "since")[0] != '\0') {
        buf_addf(&w->text, "\nNothing of it has run since %s.", text_of(facts, "since"));
    }
}

static void say_budget(struct message_words *w, const json_t *facts)
{
    const json_t *budget = json_object_get(facts, "budget");
    const char *of = text_of(budget, "of");
    double percent = json_number_value(json_object_get(budget, "percent"));
    if (percent >= 100) {
        buf_add_cstr(&w->title, "the budget of ");
    } else {
        buf_addf(&w->title, "%.6g %% of the budget of ", percent);
    }
    if (strcmp(of, "campaign") == 0) {
        add_subject(&w->title, facts);
        buf_addf(&w->command, "drover cost %s", text_of(facts, "campaign"));
    } else if (strcmp(of, "project") == 0) {
        buf_add_cstr(&w->title, "project ");
        add_name(&w->title, text_of(facts, "project"));
        buf_add_cstr(&w->command, "drover api GET /v1/projects");
    } else {
        buf_add_cstr(&w->title, "this installation");
        buf_add_cstr(&w->command, "drover api GET /v1/limits");
    }
    buf_add_cstr(&w->title, percent >= 100 ? " is used up" : " are spent");
    add_usd(&w->text, int_of(budget, "spent_micro_usd"));
    buf_add_cstr(&w->text, " of ");
    add_usd(&w->text, int_of(budget, "limit_micro_usd"));
    buf_add_cstr(&w->text, " USD are spent.");
}

static void say_failed(struct message_words *w, const json_t *facts)
{
    size_t i;
    json_t *one;
    int64_t n = int_of(facts, "failed");
    buf_addf(&w->title, "%" PRId64 " %s of ", n, n == 1 ? "part" : "parts");
    add_subject(&w->title, facts);
    buf_add_cstr(&w->title, " failed");
    json_array_foreach(json_object_get(facts, "causes"), i, one)
    {
        const char *cause = text_of(one, "cause");
        buf_addf(&w->text, "%s%s: %" PRId64, i > 0 ? ", " : "",
                 cause[0] != '\0' ? cause : "unknown", int_of(one, "parts"));
    }
    buf_addf(&w->command, "drover failures %s", text_of(facts, "campaign"));
}

/* File systems that cost money after the end of their campaign. */
static void say_kept(struct buf *b, const json_t *facts)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(facts, "kept"), i, one)
    {
        buf_addf(b,
                 "\nFile system %s costs money until %s, for a retry; drover filesystems delete %s "
                 "ends it.",
                 text_of(one, "name"), text_of(one, "until"), text_of(one, "name"));
    }
}

static void say_done(struct message_words *w, const json_t *facts)
{
    const char *state = text_of(facts, "state");
    const json_t *parts = json_object_get(facts, "parts");
    int64_t cancelled = int_of(parts, "cancelled");
    add_subject(&w->title, facts);
    buf_addf(&w->title, "%s %s", strcmp(state, "cancelled") == 0 ? " was" : "", state);
    int64_t done = int_of(parts, "done");
    buf_addf(&w->text, "%" PRId64 " %s done, %" PRId64 " failed", done,
             done == 1 ? "part" : "parts", int_of(parts, "failed"));
    if (cancelled > 0) {
        buf_addf(&w->text, ", %" PRId64 " cancelled", cancelled);
    }
    buf_add_cstr(&w->text, "; ");
    add_usd(&w->text, int_of(facts, "spent_micro_usd"));
    buf_add_cstr(&w->text, " USD spent.");
    say_kept(&w->text, facts);
    buf_addf(&w->command, "drover get %s", text_of(facts, "campaign"));
}

static void say_lost(struct message_words *w, const json_t *facts)
{
    int64_t n = int_of(facts, "lost");
    buf_addf(&w->title, "%" PRId64 " %s that no campaign knows", n, n == 1 ? "stray" : "strays");
    say_texts(&w->text, facts);
    buf_add_cstr(&w->command, "drover strays");
}

static void say_test(struct message_words *w, const json_t *facts UNUSED)
{
    buf_add_cstr(&w->title, "a test of this webhook");
    buf_add_cstr(&w->text, "It works: drover's notices arrive here.");
    buf_add_cstr(&w->command, "drover webhook");
}

static const struct message_kind {
    const char *kind, *type;
    void (*say)(struct message_words *w, const json_t *facts);
    const char *page; /* of the dashboard, when it is about no campaign */
} kinds[] = {
    {"test", "test", say_test, "/webhooks"},
    {"held", "campaign.held", say_held, "/"},
    {"budget", "budget.reached", say_budget, "/projects"},
    {"failed", "parts.failed", say_failed, "/"},
    {"done", "campaign.done", say_done, "/"},
    {"stuck", "campaign.stuck", say_stuck, "/"},
    {"lost", "jobs.lost", say_lost, "/"},
};

static void write_json(const struct message *m, const struct message_words *w, const json_t *facts,
                       struct buf *ret)
{
    struct json_out o;
    json_t *value;
    const char *key;
    json_out_init(&o, ret);
    json_out_object(&o, NULL);
    json_out_str(&o, "type", w->type);
    json_out_time(&o, "timestamp", m->at_us);
    json_out_object(&o, "data");
    json_out_str(&o, "kind", m->kind);
    json_out_str(&o, "title", buf_cstr(&w->title));
    json_out_str(&o, "text", buf_cstr(&w->text));
    json_out_str(&o, "command", buf_cstr(&w->command));
    void *at = json_object_iter((json_t *)(uintptr_t)facts);
    for (; at != NULL; at = json_object_iter_next((json_t *)(uintptr_t)facts, at)) {
        key = json_object_iter_key(at);
        value = json_object_iter_value(at);
        AUTO_FREE char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        json_out_raw(&o, key, str_of(text));
    }
    json_out_end_object(&o);
    json_out_end_object(&o);
}

/* Slack reads &, < and > as its own; with them a name could call everybody in a channel. */
static void slack_escape(struct buf *b, const char *s)
{
    for (; *s != '\0'; s++) {
        buf_add_cstr(b, *s == '&' ? "&amp;" : *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : "");
        if (strchr("&<>", *s) == NULL) {
            buf_add(b, s, 1);
        }
    }
}

static void write_slack(const struct message_words *w, struct buf *ret)
{
    struct json_out o;
    AUTO_BUF struct buf text = BUF_INIT(MESSAGE_BYTES_MAX);
    slack_escape(&text, buf_cstr(&w->title));
    buf_add_cstr(&text, "\n");
    slack_escape(&text, buf_cstr(&w->text));
    buf_add_cstr(&text, "\n");
    slack_escape(&text, buf_cstr(&w->command));
    json_out_init(&o, ret);
    json_out_object(&o, NULL);
    json_out_str(&o, "text", buf_cstr(&text));
    json_out_bool(&o, "mrkdwn", false);
    json_out_end_object(&o);
}

/* A paragraph as runs of text: a TextBlock would read a name as Markdown. */
static void teams_text(struct json_out *o, const char *text, const char *key, const char *value)
{
    json_out_object(o, NULL);
    json_out_str(o, "type", "RichTextBlock");
    json_out_array(o, "inlines");
    json_out_object(o, NULL);
    json_out_str(o, "type", "TextRun");
    json_out_str(o, "text", text);
    if (key != NULL) {
        json_out_str(o, key, value);
    }
    json_out_end_object(o);
    json_out_end_array(o);
    json_out_end_object(o);
}

/* A message with an Adaptive Card, as Teams' workflows take it. */
static void write_teams(const struct message_words *w, struct buf *ret)
{
    struct json_out o;
    json_out_init(&o, ret);
    json_out_object(&o, NULL);
    json_out_str(&o, "type", "message");
    json_out_array(&o, "attachments");
    json_out_object(&o, NULL);
    json_out_str(&o, "contentType", "application/vnd.microsoft.card.adaptive");
    json_out_object(&o, "content");
    json_out_str(&o, "$schema", "http://adaptivecards.io/schemas/adaptive-card.json");
    json_out_str(&o, "type", "AdaptiveCard");
    json_out_str(&o, "version", "1.4");
    json_out_array(&o, "body");
    teams_text(&o, buf_cstr(&w->title), "weight", "Bolder");
    teams_text(&o, buf_cstr(&w->text), NULL, NULL);
    teams_text(&o, buf_cstr(&w->command), "fontType", "Monospace");
    json_out_end_array(&o);
    json_out_end_object(&o);
    json_out_end_object(&o);
    json_out_end_array(&o);
    json_out_end_object(&o);
}

/* The title is a line of the text, too: who shows a subject may cut it. */
static void write_email(const struct message *m, const struct message_words *w, const char *page,
                        const json_t *facts, struct buf *ret)
{
    const char *campaign = text_of(facts, "campaign");
    AUTO_BUF struct buf text = BUF_INIT(MESSAGE_BYTES_MAX);
    buf_addf(&text, "%s\n\n%s\n\n%s\n", buf_cstr(&w->title), buf_cstr(&w->text),
             buf_cstr(&w->command));
    if (m->mail->public_url[0] != '\0' && str_starts(str_of(campaign), "c-")) {
        buf_addf(&text, "%s/c/%s\n", m->mail->public_url, campaign + 2);
    } else if (m->mail->public_url[0] != '\0') {
        buf_addf(&text, "%s%s\n", m->mail->public_url, page);
    }
    const struct mail mail = {.id = m->mail->id,
                              .from = m->mail->from,
                              .to = m->mail->to,
                              .at_us = m->at_us,
                              .subject = buf_cstr(&w->title),
                              .text = buf_cstr(&text)};
    mail_write(&mail, ret);
}

static const struct message_kind *kind_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].kind, name) == 0) {
            return &kinds[i];
        }
    }
    BUG("a notice of no kind");
}

bool message_write(const struct message *m, const char *format, struct buf *ret, struct err *err)
{
    AUTO_JSON json_t *facts = NULL;
    const struct message_kind *kind = kind_of(m->kind);
    if (!json_parse(str_of(m->facts_json), MESSAGE_BYTES_MAX, &facts, err)) {
        return false;
    }
    struct message_words w = {.type = kind->type,
                              .title = BUF_INIT(TITLE_MAX),
                              .text = BUF_INIT(TEXT_MAX),
                              .command = BUF_INIT(COMMAND_MAX)};
    kind->say(&w, facts);
    if (strcmp(format, "slack") == 0) {
        write_slack(&w, ret);
    } else if (strcmp(format, "teams") == 0) {
        write_teams(&w, ret);
    } else if (strcmp(format, "email") == 0) {
        write_email(m, &w, kind->page, facts, ret);
    } else {
        write_json(m, &w, facts, ret);
    }
    buf_done(&w.title);
    buf_done(&w.text);
    buf_done(&w.command);
    return !ret->overflow || err_set(err, ERR_TOO_LARGE, "a notice is too long");
}
