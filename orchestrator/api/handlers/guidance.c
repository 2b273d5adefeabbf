/* See guidance.h. */
#include "guidance.h"
#include "common/json.h"
#include "core/capacity/account_limit.h"
#include "core/model.h"
#include "core/sched/wait_reason.h"
#include "store/rows/words.h"
#include <stdio.h>

#define FACTS_BYTES_MAX (4 * 1024 * 1024)
#define TITLE_MAX       240
#define COMMAND_MAX     320
#define QUOTA_URL       "https://console.aws.amazon.com/servicequotas/"

struct guide {
    struct json_out w;
    int64_t campaign;
    const json_t *facts;
    bool runs; /* parts of it run or may start */
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

static bool absent(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return v == NULL || json_is_null(v);
}

struct guidance_item {
    const char *kind, *title, *text, *evidence; /* evidence "": none */
    const char *since, *stage;                  /* stage "": the campaign as a whole */
};

/* Opens an element up to its list of steps. */
static void item_open(struct guide *g, const struct guidance_item *i)
{
    json_out_object(&g->w, NULL);
    json_out_str(&g->w, "kind", i->kind);
    json_out_str(&g->w, "title", i->title);
    json_out_str(&g->w, "text", i->text);
    json_out_str(&g->w, "evidence", i->evidence[0] != '\0' ? i->evidence : NULL);
    json_out_str(&g->w, "since", i->since[0] != '\0' ? i->since : NULL);
    json_out_str(&g->w, "stage", i->stage[0] != '\0' ? i->stage : NULL);
    json_out_bool(&g->w, "runs", g->runs);
    json_out_array(&g->w, "steps");
}

static void item_close(struct guide *g)
{
    json_out_end_array(&g->w);
    json_out_end_object(&g->w);
}

void guidance_command(struct buf *b, const char *text, int64_t campaign_id, const char *stage)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (strncmp(p, "{c}", 3) == 0) {
            buf_addf(b, "c-%lld", (long long)campaign_id);
            p += 2;
        } else if (strncmp(p, "{s}", 3) == 0) {
            buf_add_cstr(b, stage);
            p += 2;
        } else {
            buf_add(b, p, 1);
        }
    }
}

/* One step. command has {c} for the campaign and {s} for the stage. */
static void step(struct guide *g, const char *action, const char *label, const char *command,
                 const char *stage, int64_t parts)
{
    AUTO_BUF struct buf text = BUF_INIT(COMMAND_MAX);
    guidance_command(&text, command, g->campaign, stage);
    json_out_object(&g->w, NULL);
    json_out_str(&g->w, "action", action);
    json_out_str(&g->w, "label", label);
    json_out_str(&g->w, "command", text.n > 0 ? buf_cstr(&text) : NULL);
    if (stage[0] != '\0') {
        json_out_str(&g->w, "stage", stage);
    }
    if (parts > 0) {
        json_out_i64(&g->w, "parts", parts);
    }
    if (strcmp(action, "quota") == 0) {
        json_out_str(&g->w, "url", QUOTA_URL);
    }
    json_out_end_object(&g->w);
}

static void usd(int64_t musd, char ret[static 32])
{
    int64_t cents = musd / 10000 + (musd % 10000 >= 5000);
    (void)snprintf(ret, 32, "%lld.%02lld", (long long)(cents / 100), (long long)(cents % 100));
}

/* What is spent and reserved of a budget: facts of the campaign or of a stage. */
static void money_text(const json_t *of, char ret[static TITLE_MAX])
{
    char spent[32], reserved[32], limit[32];
    usd(int_of(of, "spent"), spent);
    usd(int_of(of, "reserved"), reserved);
    usd(int_of(of, "limit"), limit);
    bool capped = !absent(of, "limit");
    (void)snprintf(ret, TITLE_MAX, "%s USD spent, %s reserved, %s%s%s", spent, reserved,
                   capped ? "budget " : "no budget of its own", capped ? limit : "",
                   capped ? " USD" : "");
}

/* What of a stage's own caps leaves too little: of its parts (`why` PART_BUDGET), or of all. */
static void own_money_text(const json_t *stage, enum wait_reason why, char ret[static TITLE_MAX])
{
    char each[32];
    usd(int_of(stage, "per_task"), each);
    if (why == WAIT_PART_BUDGET) {
        (void)snprintf(ret, TITLE_MAX, "each part at most %s USD", each);
    } else {
        money_text(stage, ret);
    }
}

/* Raises that cap. */
static void own_money_step(struct guide *g, const char *stage, enum wait_reason why, bool resume)
{
    bool part = why == WAIT_PART_BUDGET;
    const char *command = part && resume ? "drover budget {c}/{s} --per-task USD --resume"
                          : part         ? "drover budget {c}/{s} --per-task USD"
                          : resume       ? "drover budget {c}/{s} USD --resume"
                                         : "drover budget {c}/{s} USD";
    step(g, part ? "part_budget" : "budget",
         resume ? "Raise the stage's budget and resume" : "Raise the stage's budget", command,
         stage, 0);
}

/* "budget of stage NAME", "budget per part of stage NAME": the campaign is held, since no other
 * stage of it can go on. False: it is held by its own budget, or one above. */
static bool own_budget_held(struct guide *g)
{
    const char *reason = text_of(g->facts, "reason"), *of = strstr(reason, " of stage ");
    if (of == NULL) {
        return false;
    }
    const char *name = of + strlen(" of stage ");
    enum wait_reason why =
        strstr(reason, " per part") != NULL ? WAIT_PART_BUDGET : WAIT_STAGE_BUDGET;
    size_t i;
    json_t *s;
    char title[TITLE_MAX], evidence[TITLE_MAX] = "";
    json_array_foreach(json_object_get(g->facts, "stages"), i, s)
    {
        if (strcmp(text_of(s, "name"), name) == 0) {
            own_money_text(s, why, evidence);
        }
    }
    (void)snprintf(title, sizeof title, "held: the budget of %sstage %.80s is used up",
                   why == WAIT_PART_BUDGET ? "parts of " : "", name);
    item_open(g, &(struct guidance_item){.kind = "budget",
                                         .title = title,
                                         .text = "No other stage can go on. Nothing new starts "
                                                 "until it is raised and the campaign resumed.",
                                         .evidence = evidence,
                                         .since = text_of(g->facts, "since"),
                                         .stage = name});
    own_money_step(g, name, why, true);
    step(g, "resume", "Resume", "drover resume {c}", "", 0);
    item_close(g);
    return true;
}

static void budget_held(struct guide *g)
{
    char evidence[TITLE_MAX];
    if (own_budget_held(g)) {
        return;
    }
    money_text(g->facts, evidence);
    item_open(
        g, &(struct guidance_item){.kind = "budget",
                                   .title = "held: the budget is used up",
                                   .text = "Nothing new starts until the budget is raised and the "
                                           "campaign resumed.",
                                   .evidence = evidence,
                                   .since = text_of(g->facts, "since"),
                                   .stage = ""});
    step(g, "budget", "Raise budget and resume", "drover budget {c} USD --resume", "", 0);
    step(g, "resume", "Resume", "drover resume {c}", "", 0);
    item_close(g);
}

static void gate_held(struct guide *g, const json_t *stage)
{
    const char *name = text_of(stage, "name");
    char title[TITLE_MAX];
    (void)snprintf(title, sizeof title, "stage %.80s is held: its gate did not let it pass", name);
    item_open(g,
              &(struct guidance_item){.kind = "gate",
                                      .title = title,
                                      .text = "Its runs ended, and no stage that needs it starts.",
                                      .evidence = text_of(stage, "reason"),
                                      .since = text_of(g->facts, "since"),
                                      .stage = name});
    step(g, "override", "Override gate", "drover override {c}/{s}", name, 0);
    step(g, "show", "Show its metrics", "drover metrics {c}/{s}", name, 0);
    item_close(g);
}

/* A stage that its breaker or its gate holds. */
static void stage_held(struct guide *g, const json_t *stage)
{
    const char *name = text_of(stage, "name");
    if (strncmp(text_of(stage, "reason"), "gate: ", 6) == 0) {
        gate_held(g, stage);
        return;
    }
    int64_t failed = int_of(stage, "failed");
    char title[TITLE_MAX];
    (void)snprintf(title, sizeof title, "stage %.80s is held: the same failure came again", name);
    item_open(g,
              &(struct guidance_item){.kind = "breaker",
                                      .title = title,
                                      .text = "No part of it starts, so that no money is lost on "
                                              "attempts that fail in the same way.",
                                      .evidence = text_of(stage, "reason"),
                                      .since = text_of(g->facts, "since"),
                                      .stage = name});
    if (failed > 0) {
        char label[64];
        (void)snprintf(label, sizeof label, "Retry %lld and resume", (long long)failed);
        step(g, "retry", label, "drover retry {c} --stage {s} --resume", name, failed);
    }
    step(g, "resume", "Resume", "drover resume {c}", "", 0);
    item_close(g);
}

static void held_otherwise(struct guide *g)
{
    item_open(g, &(struct guidance_item){.kind = "held",
                                         .title = "held: a person decides how it goes on",
                                         .text = "Nothing new starts until it is resumed.",
                                         .evidence = text_of(g->facts, "reason"),
                                         .since = text_of(g->facts, "since"),
                                         .stage = ""});
    step(g, "resume", "Resume", "drover resume {c}", "", 0);
    item_close(g);
}

static void stopped(struct guide *g, bool drains)
{
    char text[TITLE_MAX];
    int64_t active = int_of(g->facts, "active");
    (void)snprintf(text, sizeof text, "No new part starts; %lld run%s to %s end.",
                   (long long)active, active == 1 ? "s" : "", active == 1 ? "its" : "their");
    item_open(g, &(struct guidance_item){
                     .kind = drains ? "draining" : "paused",
                     .title = drains ? "draining: no new part starts" : "paused: no part starts",
                     .text = active > 0 ? text : "It waits until it is resumed.",
                     .evidence = text_of(g->facts, "reason"),
                     .since = text_of(g->facts, "since"),
                     .stage = ""});
    step(g, "resume", "Resume", "drover resume {c}", "", 0);
    item_close(g);
}

static void planned(struct guide *g)
{
    item_open(g, &(struct guidance_item){
                     .kind = "leader",
                     .title = "waits: no leader has taken it yet",
                     .text = "It was accepted, but no droverd leads that would start it.",
                     .evidence = "",
                     .since = text_of(g->facts, "since"),
                     .stage = ""});
    step(g, "doctor", "Check the server", "drover doctor", "", 0);
    item_close(g);
}

static void parked(struct guide *g)
{
    char title[TITLE_MAX];
    (void)snprintf(title, sizeof title, "%s set aside: the database refuses a value",
                   text_of(g->facts, "parked_what"));
    bool was = g->runs;
    g->runs = true; /* the rest goes on */
    item_open(g, &(struct guidance_item){
                     .kind = "parked",
                     .title = title,
                     .text = "What is set aside keeps its slots and money while its job "
                             "may live; everything else goes on.",
                     .evidence = text_of(g->facts, "parked_reason"),
                     .since = text_of(g->facts, "parked_since"),
                     .stage = ""});
    step(g, "unpark", "Try again", "drover unpark {c}", "", 0);
    step(g, "show", "Show them", "drover parked {c}", "", 0);
    item_close(g);
    g->runs = was;
}

/* Does a part of it wait, in a stage that runs? */
static bool any_waits(const struct guide *g)
{
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(g->facts, "stages"), i, s)
    {
        if (strcmp(text_of(s, "state"), "running") == 0 && int_of(s, "waiting") > 0) {
            return true;
        }
    }
    return false;
}

/* Parts that a person holds; the others go on. */
static void parts_held(struct guide *g)
{
    bool was = g->runs;
    int64_t n = int_of(g->facts, "parts_held");
    char title[TITLE_MAX], label[64];
    g->runs = was || any_waits(g);
    (void)snprintf(title, sizeof title, "%lld part%s held by a person", (long long)n,
                   n == 1 ? " is" : "s are");
    (void)snprintf(label, sizeof label, "Release %lld", (long long)n);
    item_open(g, &(struct guidance_item){
                     .kind = "parts_held",
                     .title = title,
                     .text = "Other parts go on; their stage does not end before these are "
                             "released and have ended.",
                     .evidence = "",
                     .since = "",
                     .stage = ""});
    step(g, "release", label, "drover release {c}", "", n);
    step(g, "show", "Show them", "drover parts {c} --state held", "", 0);
    item_close(g);
    g->runs = was;
}

/* A file system that costs money until its ttl is over, so that a retry need not import again. */
static void kept(struct guide *g, const json_t *filesystem)
{
    char title[TITLE_MAX], command[COMMAND_MAX];
    (void)snprintf(title, sizeof title, "file system %.63s is kept for a retry until %.20s",
                   text_of(filesystem, "name"), text_of(filesystem, "until"));
    (void)snprintf(command, sizeof command, "drover filesystems delete %.63s",
                   text_of(filesystem, "name"));
    item_open(g, &(struct guidance_item){
                     .kind = "kept_filesystem",
                     .title = title,
                     .text = "It costs money until then; a retry uses what it has imported.",
                     .evidence = "",
                     .since = text_of(g->facts, "since"),
                     .stage = ""});
    step(g, "failures", "Mend and retry what failed", "drover retry {c}", "", 0);
    step(g, "filesystem", "Delete it", command, "", 0);
    item_close(g);
}

/* Its deadline has passed; what runs goes on. */
static void late(struct guide *g)
{
    bool was = g->runs;
    char title[TITLE_MAX];
    (void)snprintf(title, sizeof title, "late: its deadline was %.19sZ",
                   text_of(g->facts, "late_since"));
    g->runs = true;
    item_open(g, &(struct guidance_item){.kind = "late",
                                         .title = title,
                                         .text = "Nothing is stopped by a deadline: it goes on.",
                                         .evidence = "",
                                         .since = text_of(g->facts, "late_since"),
                                         .stage = ""});
    step(g, "show", "Show end, cost and what binds", "drover deadline {c}", "", 0);
    step(g, "limits", "Change limits", "drover scale {c} N", "", 0);
    item_close(g);
    g->runs = was;
}

/* "quota 0 for ml.m5.large (0 held by drover, 0 by others)" for each rung of the ladder. */
static void quota_text(const json_t *types, struct buf *b)
{
    size_t i;
    json_t *t;
    json_array_foreach((json_t *)(uintptr_t)types, i, t)
    {
        buf_add_cstr(b, i > 0 ? "; " : "");
        if (absent(t, "limit")) {
            buf_addf(b, "quota unknown for %s", text_of(t, "type"));
        } else {
            buf_addf(b, "quota %lld for %s", (long long)int_of(t, "limit"), text_of(t, "type"));
        }
        buf_addf(b, " (%lld held by drover, %lld by others", (long long)int_of(t, "held"),
                 (long long)int_of(t, "others"));
        if (!absent(t, "own_limit")) {
            buf_addf(b, ", %lld allowed by an admin", (long long)int_of(t, "own_limit"));
        }
        buf_add_cstr(b, ")");
    }
}

static int64_t limit_of(const json_t *account, enum account_quota q)
{
    const char *word = account_quota_word(q);
    return absent(account, word) ? -1 : int_of(account, word);
}

/* A quota without a type that one job of the stage is larger than; false when its type's is smaller
 * too, which says more. */
static bool account_text(const json_t *facts, const json_t *stage, char ret[static TITLE_MAX])
{
    const json_t *account = json_object_get(facts, "account"), *o = json_object_get(stage, "job");
    const struct account_limit_job job = {
        json_is_true(json_object_get(o, "spot")) ? MARKET_SPOT : MARKET_ON_DEMAND,
        int_of(o, "instances"), int_of(o, "run_s"), int_of(o, "volume_gb")};
    size_t i;
    json_t *t;
    json_array_foreach(json_object_get(stage, "types"), i, t)
    {
        if (absent(t, "limit") || int_of(t, "limit") < job.instances) {
            return false;
        }
    }
    const struct quota_ledger_account a = {
        .total = {{.limit = limit_of(account, ACCOUNT_INSTANCES)},
                  {.limit = limit_of(account, ACCOUNT_SPOT_INSTANCES)}},
        .per_job = limit_of(account, ACCOUNT_PER_JOB),
        .longest_run_s = limit_of(account, ACCOUNT_RUN_S),
        .volume_gb = limit_of(account, ACCOUNT_VOLUME_GB)};
    return account_limit_exceeded(&a, &job, ret, TITLE_MAX);
}

/* Types whose price is missing; all of them when none is, since it came a moment ago. */
static void price_text(const json_t *types, struct buf *b)
{
    size_t i;
    json_t *t;
    bool some = false;
    json_array_foreach((json_t *)(uintptr_t)types, i, t)
    {
        some |= absent(t, "price");
    }
    buf_add_cstr(b, "no price is known for");
    json_array_foreach((json_t *)(uintptr_t)types, i, t)
    {
        if (!some || absent(t, "price")) {
            buf_addf(b, " %s", text_of(t, "type"));
        }
    }
}

static void wait_title(const struct guide *g, const json_t *stage, enum wait_reason why,
                       struct buf *b)
{
    const struct wait_reason_row *row = wait_reason_row(why);
    char money[TITLE_MAX];
    int64_t of_stage = int_of(stage, "parts_limit"), of_all = int_of(g->facts, "parts_limit");
    buf_add_cstr(b, "waits: ");
    if (why == WAIT_QUOTA_TOO_SMALL && account_text(g->facts, stage, money)) {
        buf_add_cstr(b, money);
    } else if (row->figures == WAIT_FIGURES_QUOTA) {
        quota_text(json_object_get(stage, "types"), b);
    } else if (why == WAIT_PRICE_UNKNOWN && !absent(stage, "types")) {
        price_text(json_object_get(stage, "types"), b);
    } else if (why == WAIT_BUDGET) {
        money_text(g->facts, money);
        buf_addf(b, "%s (%s)", wait_reason_text(why), money);
    } else if (row->figures == WAIT_FIGURES_OWN_CAP) {
        own_money_text(stage, why, money);
        buf_addf(b, "%s (%s)", wait_reason_text(why), money);
    } else if (why == WAIT_CONCURRENCY && !absent(g->facts, "parts_limit")) {
        buf_addf(b, "limits.parts of the campaign is %lld", (long long)of_all);
    } else if (why == WAIT_STAGE_LIMIT && !absent(stage, "parts_limit")) {
        buf_addf(b, "at most %lld parts of stage %s may run", (long long)of_stage,
                 text_of(stage, "name"));
    } else {
        buf_add_cstr(b, wait_reason_text(why));
    }
}

static void wait_steps(struct guide *g, const char *stage, enum wait_reason why)
{
    const char *next = wait_reason_next(why);
    if (why == WAIT_QUOTA_TOO_SMALL || why == WAIT_SLOTS) {
        step(g, "quota", "Ask AWS for a higher quota", "drover quotas", "", 0);
    } else if (why == WAIT_BUDGET) {
        step(g, "budget", "Raise budget", "drover budget {c} USD", "", 0);
    } else if (wait_reason_row(why)->figures == WAIT_FIGURES_OWN_CAP) {
        own_money_step(g, stage, why, false);
    } else if (why == WAIT_CONCURRENCY) {
        step(g, "limits", "Change limits", "drover scale {c} N", "", 0);
    } else if (why == WAIT_STAGE_LIMIT) {
        step(g, "limits", "Change limits", "drover scale {c}/{s} N", stage, 0);
    } else if (next[0] != '\0') {
        step(g, "show", "Next", next, "", 0);
    }
}

/* The first stage that waits for something time alone does not bring. */
static void waits(struct guide *g)
{
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(g->facts, "stages"), i, s)
    {
        enum wait_reason why = wait_reason_parse(text_of(s, "wait_reason"));
        bool passes = why == WAIT_REASON_COUNT || wait_reason_row(why)->told == WAIT_TOLD_PASSES;
        if (strcmp(text_of(s, "state"), "running") != 0 || int_of(s, "waiting") == 0 || passes) {
            continue;
        }
        AUTO_BUF struct buf title = BUF_INIT(4096);
        wait_title(g, s, why, &title);
        item_open(g, &(struct guidance_item){.kind = wait_reason_name(why),
                                             .title = buf_cstr(&title),
                                             .text = wait_reason_text(why),
                                             .evidence = text_of(s, "wait_detail"),
                                             .since = text_of(g->facts, "since"),
                                             .stage = text_of(s, "name")});
        wait_steps(g, text_of(s, "name"), why);
        item_close(g);
        return;
    }
}

/* Held stages; returns how many. */
static int held_stages(struct guide *g)
{
    size_t i;
    json_t *s;
    int n = 0;
    json_array_foreach(json_object_get(g->facts, "stages"), i, s)
    {
        if (strcmp(text_of(s, "state"), "held") == 0) {
            stage_held(g, s);
            n++;
        }
    }
    return n;
}

void guidance_out(struct buf *b, int64_t campaign_id, const char *facts_json)
{
    AUTO_JSON json_t *facts = NULL;
    struct err ignored = ERR_INIT;
    struct guide g = {.campaign = campaign_id};
    json_out_init(&g.w, b);
    json_out_array(&g.w, NULL);
    if (facts_json != NULL && json_parse(str_of(facts_json), FACTS_BYTES_MAX, &facts, &ignored)) {
        g.facts = facts;
        enum campaign_state state = campaign_state_parse(text_of(facts, "state"));
        bool held = state == CAMPAIGN_HELD;
        g.runs = int_of(facts, "active") > 0;
        bool budget = held && strncmp(text_of(facts, "reason"), "budget", 6) == 0;
        if (budget) {
            budget_held(&g);
        }
        int stages = held_stages(&g);
        if (held && !budget && stages == 0) {
            held_otherwise(&g);
        } else if (state == CAMPAIGN_PAUSED || state == CAMPAIGN_DRAINING) {
            stopped(&g, state == CAMPAIGN_DRAINING);
        } else if (state == CAMPAIGN_PLANNED && stages == 0) {
            planned(&g);
        } else if (state == CAMPAIGN_RUNNING && !g.runs) {
            waits(&g);
        }
        if (int_of(facts, "parts_held") > 0) {
            parts_held(&g);
        }
        if (!absent(facts, "kept")) {
            kept(&g, json_object_get(facts, "kept"));
        }
        if (int_of(facts, "parked") > 0) {
            parked(&g);
        }
        if (!absent(facts, "late_since")) {
            late(&g);
        }
    }
    json_out_end_array(&g.w);
}
