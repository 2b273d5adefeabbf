/* The input of a forecast; see forecast_input.h. One snapshot transaction reads everything, so that
 * parts, slots and money are consistent. */
#include "forecast_input.h"
#include "api/server/server.h"
#include "common/clock.h"
#include "core/spec/spec_json.h"
#include "forecast_history.h"
#include "forecast_sizes.h"
#include "forecast_slots.h"
#include "store/pg/tx.h"
#include "store/rows/view.h"

#define AHEAD_ARENA_MAX     (256 * 1024 * 1024)
#define AHEAD_CAMPAIGNS_MAX 200 /* other running campaigns considered; the answer counts the rest */
#define MB                  (INT64_C(1024) * 1024)
#define COLD_START_S        180 /* until the stage's own starts are known */
#define RETRY_PARTS_MAX     300000
#define CREATES_PER_S       1.0 /* SageMaker's default rate */
#define CREATES_PER_S_MAX   1e6
#define FORECAST_CPU_US     (2 * USEC_PER_SEC) /* of one answer: forecast, what-if and advice */

struct forecast_facts_stage { /* memory owned for in.stages[i] */
    struct forecast_part *parts;
    size_t parts_n, parts_cap;
    uint32_t *times; /* NULL: parts one by one */
    struct forecast_job *jobs;
    size_t jobs_n;
};
struct forecast_facts {
    struct arena arena;
    struct forecast_input in;
    struct forecast_campaign *campaigns;
    struct forecast_project *projects;
    const char **project_names;
    struct forecast_stage *stages;
    struct forecast_facts_stage *own;
    struct forecast_slots slots;
    int stages_cap;
    int64_t target_id;             /* 0: none yet */
    bool retry;                    /* ended stages of the target may run again */
    struct apidb_part_waiting why; /* in.why_task_id, if it waits */
    size_t parts_n;                /* entries in all stages */
    int64_t left_out;              /* other running campaigns that are not here */
    int64_t cpu_until_us;          /* of the thread that loaded it */
};

struct forecast_input *forecast_facts_input(struct forecast_facts *a)
{
    return &a->in;
}

int64_t forecast_facts_left_out(const struct forecast_facts *a)
{
    return a->left_out;
}

const char *forecast_facts_type(const struct forecast_facts *a, int slots_i)
{
    return slots_i >= 0 && slots_i < a->slots.n ? a->slots.at[slots_i].instance_type : "";
}

void forecast_facts_free(struct forecast_facts *a)
{
    if (a == NULL) {
        return;
    }
    for (int i = 0; i < a->in.stages_n; i++) {
        free(a->own[i].parts);
        free(a->own[i].times);
        free(a->own[i].jobs);
    }
    free(a->campaigns);
    free(a->projects);
    free(a->project_names);
    free(a->stages);
    free(a->own);
    free(a->slots.at);
    arena_done(&a->arena);
    free(a);
}

void forecast_facts_freep(struct forecast_facts **a)
{
    forecast_facts_free(*a);
}

static musd_t left_of(musd_t cap, musd_t used)
{
    return cap < 0 ? INT64_MAX : MAX(0, cap - used);
}

/* Projects with their limits; row 0 is the whole installation. */
static bool load_projects(struct forecast_facts *a, struct store *db, struct err *err)
{
    AUTO_FREE struct project_row *rows = NULL;
    size_t n = 0;
    if (!view_projects(db, &rows, &n, err)) {
        return false;
    }
    a->projects = xcalloc(n + 1, sizeof *a->projects); /* one more for the project of a plan */
    a->project_names = xcalloc(n + 1, sizeof *a->project_names);
    for (size_t i = 0; i < n; i++) {
        musd_t left = left_of(rows[i].cap_musd, rows[i].reserved_musd + rows[i].spent_musd);
        if (rows[i].id == 0) {
            a->in.parts_limit = rows[i].parts_limit;
            a->in.left_musd = left;
            continue;
        }
        a->project_names[a->in.projects_n] =
            arena_strndup(&a->arena, rows[i].name, strlen(rows[i].name));
        a->projects[a->in.projects_n++] =
            (struct forecast_project){.project_id = rows[i].id,
                                      .weight = rows[i].weight,
                                      .parts_limit = rows[i].parts_limit,
                                      .left_musd = left};
    }
    return true;
}

static struct forecast_stage *stage_add(struct forecast_facts *a,
                                        struct forecast_facts_stage **ret_own)
{
    if (a->in.stages_n == a->stages_cap) {
        a->stages_cap = MAX(16, 2 * a->stages_cap);
        a->stages = xrealloc(a->stages, (size_t)a->stages_cap * sizeof *a->stages);
        a->own = xrealloc(a->own, (size_t)a->stages_cap * sizeof *a->own);
    }
    a->in.stages = a->stages;
    memset(&a->stages[a->in.stages_n], 0, sizeof *a->stages);
    memset(&a->own[a->in.stages_n], 0, sizeof *a->own);
    *ret_own = &a->own[a->in.stages_n];
    return &a->stages[a->in.stages_n++];
}

static void part_add(struct forecast_facts_stage *own, const struct forecast_part *p)
{
    if (own->parts_n == own->parts_cap) {
        own->parts_cap = MAX((size_t)256, 2 * own->parts_cap);
        own->parts = xrealloc(own->parts, own->parts_cap * sizeof *own->parts);
    }
    own->parts[own->parts_n++] = *p;
}

static void on_tasks(void *ctx, const struct task_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].state == TASK_WAITING) {
            part_add(ctx, &(struct forecast_part){.task_id = rows[i].id,
                                                  .not_before_us = rows[i].not_before_us,
                                                  .seq = (uint32_t)rows[i].seq,
                                                  .size_mb = size_mb_of(rows[i].size)});
        }
    }
}

static void stage_defaults(struct forecast_stage *st)
{
    st->parts_limit = st->stage->parts_limit;
    st->left_musd = left_of(st->stage->budget_musd, 0);
    st->part_cap_musd = left_of(st->stage->per_task_musd, 0);
    st->cold_start_s = COLD_START_S;
    duration_init(&st->duration, st->stage->expect_s * USEC_PER_SEC);
    duration_init(&st->start, 0);
}

/* The file's expectation applies to a part of the mean size. */
static void expect_mean(struct forecast_stage *st, const struct forecast_facts_stage *own)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < own->parts_n; i++) {
        sum += own->parts[i].size_mb;
    }
    duration_expect_size(&st->duration, own->parts_n > 0 ? (uint32_t)(sum / own->parts_n) : 0);
}

static void set_needs(struct forecast_stage *st, const struct spec *spec, const int *index_of)
{
    for (int k = 0; k < st->stage->needs_n; k++) {
        int i = spec_stage_find(spec, st->stage->needs[k]);
        if (i >= 0 && index_of[i] >= 0) {
            st->needs[st->needs_n++] = index_of[i];
        }
    }
}

/* One by one, or by classes of size when they are many. */
static bool load_parts(struct forecast_facts *a, struct store *db, const struct stage_row *row,
                       struct forecast_facts_stage *own, struct err *err)
{
    enum forecast_of of = row->campaign_id != a->target_id ? FORECAST_OF_OTHERS
                          : a->in.why_task_id != 0         ? FORECAST_OF_PART
                                                           : FORECAST_OF_TARGET;
    size_t entries = forecast_sizes_entries(row, of);
    size_t most = entries > 0 ? entries : (size_t)MAX(0, row->tasks);
    if (a->parts_n + most > FORECAST_PARTS_MAX || a->in.stages_n > FORECAST_STAGES_MAX) {
        a->in.too_large = true;
        return true;
    }
    bool ok = true;
    if (entries > 0) {
        struct forecast_sizes s = {0};
        ok = forecast_sizes_load(db, row, entries, &a->why, a->in.why_task_id, a->in.now_us, &s,
                                 err);
        own->parts = s.parts;
        own->times = s.times;
        own->parts_n = s.n;
    } else if (row->tasks > 0) {
        ok = view_tasks(db, NULL, row->campaign_id, row->id, 0, row->tasks, on_tasks, own, err);
    }
    a->parts_n += own->parts_n;
    return ok;
}

static bool load_stage(struct forecast_facts *a, struct store *db, const struct stage_row *row,
                       const struct spec *spec, int *index_of, struct err *err)
{
    int spec_i = spec_stage_find(spec, row->name);
    if (spec_i < 0) {
        return true; /* a stage kind this version does not run */
    }
    struct forecast_facts_stage *own = NULL;
    index_of[spec_i] = a->in.stages_n;
    struct forecast_stage *st = stage_add(a, &own);
    st->campaign_id = row->campaign_id;
    st->stage_id = row->id;
    st->campaign_i = a->in.campaigns_n;
    st->spec = spec;
    st->stage = spec->stages[spec_i];
    bool again = a->retry && row->campaign_id == a->target_id;
    bool ended = stage_state_terminal(row->state);
    st->may_start = row->state == STAGE_RUNNING || row->state == STAGE_BLOCKED || (again && ended);
    set_needs(st, spec, index_of);
    stage_defaults(st);
    st->parts_limit = row->parts_limit;
    st->committed_musd = row->reserved_musd + row->spent_musd;
    st->left_musd = left_of(row->cap_musd, st->committed_musd);
    st->part_cap_musd = left_of(row->per_task_musd, 0);
    if (ended && !again) {
        return true;
    }
    st->held_n = row->counts[TASK_HELD];
    if (!forecast_history_load(db, &a->arena, st, err) || !load_parts(a, db, row, own, err)) {
        return false;
    }
    expect_mean(st, own);
    return true;
}

static struct forecast_campaign *campaign_add(struct forecast_facts *a)
{
    size_t n = (size_t)a->in.campaigns_n++;
    a->campaigns = xrealloc(a->campaigns, (n + 1) * sizeof *a->campaigns);
    return &a->campaigns[n];
}

static int project_find(const struct forecast_facts *a, int64_t project_id)
{
    for (int i = 0; i < a->in.projects_n; i++) {
        if (a->projects[i].project_id == project_id) {
            return i;
        }
    }
    return 0;
}

/* False: a newer release wrote the file, or it is damaged. */
static bool spec_read(struct forecast_facts *a, const char *text, struct spec **ret)
{
    AUTO_JSON json_t *v = NULL;
    struct err ignored = ERR_INIT; /* the leader has parked the campaign and tells why */
    return json_parse(str_of(text), SPEC_ARENA_BYTES, &v, &ignored) &&
           spec_from_json(v, &a->arena, ret, &ignored);
}

/* One whose file cannot be read is left out, or as the target without stages and in.unread. */
static bool load_campaign(struct forecast_facts *a, struct store *db, int64_t id, bool target,
                          struct err *err)
{
    struct campaign_row c;
    struct spec *spec = NULL;
    AUTO_FREE struct stage_row *rows = NULL;
    size_t n = 0;
    if (!view_campaign(db, id, &c, err)) {
        return false;
    }
    AUTO_FREE char *spec_json = c.spec_json;
    if (!target && (c.state != CAMPAIGN_RUNNING || c.wanted != WANTED_RUN)) {
        return true; /* takes no new slot, and its end is not forecast */
    }
    bool unread = !spec_read(a, spec_json, &spec);
    if (unread && !target) {
        a->left_out++;
        return true;
    }
    a->in.unread = a->in.unread || unread;
    if (!unread && !view_stages(db, id, &rows, &n, err)) {
        return false;
    }
    int index_of[SPEC_STAGES_MAX];
    memset(index_of, -1, sizeof index_of);
    for (size_t i = 0; i < n; i++) {
        if (!load_stage(a, db, &rows[i], spec, index_of, err)) {
            return false;
        }
    }
    a->in.target_i = target ? a->in.campaigns_n : a->in.target_i;
    *campaign_add(a) =
        (struct forecast_campaign){.campaign_id = id,
                                   .project_i = project_find(a, c.project_id),
                                   .priority = c.priority,
                                   .weight = c.weight,
                                   .parts_limit = c.parts_limit,
                                   .left_musd = left_of(c.cap_musd, c.reserved_musd + c.spent_musd),
                                   .spent_musd = c.spent_musd,
                                   .reserved_musd = c.reserved_musd};
    return true;
}

static bool load_jobs(struct forecast_facts *a, struct store *db, struct err *err)
{
    struct attempt_row *rows = NULL;
    size_t n = 0;
    if (!view_attempts(db, 0, 0, &rows, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        int slots_i = forecast_slots_find(&a->slots, rows[i].instance_type, rows[i].market);
        for (int k = 0; k < a->in.stages_n && rows[i].holds; k++) {
            if (a->stages[k].stage_id == rows[i].stage_id) {
                struct forecast_facts_stage *own = &a->own[k];
                own->jobs = xrealloc(own->jobs, (own->jobs_n + 1) * sizeof *own->jobs);
                own->jobs[own->jobs_n++] =
                    (struct forecast_job){.task_id = rows[i].task_id,
                                          .intended_us = rows[i].intended_us,
                                          .started_us = rows[i].started_us,
                                          .reserve_musd = rows[i].reserved_musd,
                                          .size_mb = size_mb_of(rows[i].size),
                                          .slots_i = slots_i,
                                          .instances = rows[i].instances};
            }
        }
    }
    attempt_rows_free(rows, n);
    return true;
}

/* Set the pointers into arrays that moved while they grew. */
static void settle_pointers(struct forecast_facts *a)
{
    for (int i = 0; i < a->in.stages_n; i++) {
        a->stages[i].parts = a->own[i].parts;
        a->stages[i].parts_n = a->own[i].parts_n;
        a->stages[i].times = a->own[i].times;
        a->stages[i].jobs = a->own[i].jobs;
        a->stages[i].jobs_n = a->own[i].jobs_n;
    }
    a->in.stages = a->stages;
    a->in.campaigns = a->campaigns;
    a->in.projects = a->projects;
    a->in.slots = a->slots.at;
    a->in.slots_n = a->slots.n;
    a->in.account = &a->slots.account;
}

static bool load_all(struct forecast_facts *a, struct store *db, int64_t campaign_id,
                     bool *ret_ended, struct err *err)
{
    AUTO_FREE struct campaign_version *live = NULL;
    AUTO_FREE int64_t *others = NULL;
    size_t n = 0, others_n = 0, next = 0;
    bool found = campaign_id == 0;
    if (!forecast_slots_load(&a->slots, db, err) || !load_projects(a, db, err) ||
        !view_versions(db, &live, &n, err) ||
        !apidb_others_running(db, campaign_id, AHEAD_CAMPAIGNS_MAX, &others, &others_n,
                              &a->left_out, err) ||
        (a->in.why_task_id != 0 &&
         !apidb_part_waiting(db, campaign_id, a->in.why_task_id, &a->why, err))) {
        return false;
    }
    for (size_t i = 0; i < n; i++) { /* both by id */
        bool target = live[i].id == campaign_id;
        while (next < others_n && others[next] < live[i].id) {
            next++;
        }
        if (!target && (next == others_n || others[next] != live[i].id)) {
            continue;
        }
        if (!load_campaign(a, db, live[i].id, target, err)) {
            return false;
        }
        found = found || target;
    }
    if (!found && a->retry) {
        *ret_ended = true;
        return load_campaign(a, db, campaign_id, true, err) && load_jobs(a, db, err);
    }
    if (!found) {
        struct campaign_row c;
        if (!view_campaign(db, campaign_id, &c, err)) {
            return false;
        }
        free(c.spec_json);
        *ret_ended = true;
        return true;
    }
    *ret_ended = false;
    return load_jobs(a, db, err);
}

bool forecast_creates_per_s(struct api_req *r, double *ret, struct err *err)
{
    const struct api_status *s = req_config(r)->status;
    int64_t own_u = s != NULL ? atomic_load(&s->creates_per_s_u) : 0, u = 0;
    if (own_u > 0 && atomic_load(&s->leading)) {
        u = own_u;
    } else if (!apidb_create_rate(r->db, &u, err)) {
        return false;
    }
    u = u > 0 ? u : own_u;
    *ret = u > 0 ? MIN((double)u / 1e6, CREATES_PER_S_MAX) : CREATES_PER_S;
    return true;
}

static bool expired(void *ctx)
{
    const struct forecast_facts *a = ctx;
    return clock_cpu_us() > a->cpu_until_us;
}

static bool facts_load(struct api_req *r, int64_t campaign_id, int64_t why_task_id, bool retry,
                       struct forecast_facts **ret, bool *ret_ended, struct err *err)
{
    AUTO_FORECAST_FACTS struct forecast_facts *a = xcalloc(1, sizeof *a);
    arena_init(&a->arena, AHEAD_ARENA_MAX);
    a->slots.account = (struct quota_ledger_account)QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    a->in = (struct forecast_input){.now_us = clock_wall_us(),
                                    .seed = (uint64_t)campaign_id + 1,
                                    .parts_limit = -1,
                                    .left_musd = INT64_MAX,
                                    .target_i = -1,
                                    .why_task_id = why_task_id};
    a->target_id = campaign_id;
    a->retry = retry;
    AUTO_TX struct store *tx = r->db;
    if (!tx_begin(tx, TX_SNAPSHOT, err) || !forecast_creates_per_s(r, &a->in.creates_per_s, err) ||
        !load_all(a, tx, campaign_id, ret_ended, err) || !tx_commit(tx, err)) {
        return false;
    }
    settle_pointers(a);
    a->cpu_until_us = clock_cpu_us() + FORECAST_CPU_US;
    a->in.expired = expired;
    a->in.expired_ctx = a;
    *ret = TAKE(a);
    return true;
}

bool forecast_facts_load(struct api_req *r, int64_t campaign_id, int64_t why_task_id,
                         struct forecast_facts **ret, bool *ret_ended, struct err *err)
{
    return facts_load(r, campaign_id, why_task_id, false, ret, ret_ended, err);
}

bool forecast_facts_load_retry(struct api_req *r, int64_t campaign_id, struct forecast_facts **ret,
                               bool *ret_live, struct err *err)
{
    bool ended = false;
    bool ok = facts_load(r, campaign_id, 0, true, ret, &ended, err);
    *ret_live = ok && !ended;
    return ok;
}

void forecast_facts_add_parts(struct forecast_facts *a, int64_t stage_id, int64_t n, int64_t size)
{
    for (int i = 0; i < a->in.stages_n; i++) {
        struct forecast_facts_stage *own = &a->own[i];
        if (a->stages[i].stage_id != stage_id || a->stages[i].campaign_i != a->in.target_i) {
            continue;
        }
        if (own->times != NULL || n > RETRY_PARTS_MAX) {
            a->in.too_large = true;
            return;
        }
        for (int64_t k = 0; k < n; k++) {
            part_add(own, &(struct forecast_part){
                              .task_id = -1 - k, .seq = (uint32_t)k, .size_mb = size_mb_of(size)});
        }
    }
    settle_pointers(a);
}

/* The project a file names; a new project has no limits. */
static int project_of_plan(struct forecast_facts *a, const char *name)
{
    for (int i = 0; i < a->in.projects_n; i++) {
        if (strcmp(a->project_names[i], name) == 0) {
            return i;
        }
    }
    a->projects[a->in.projects_n] = (struct forecast_project){.project_id = INT64_MAX,
                                                              .weight = SPEC_WEIGHT_DEFAULT,
                                                              .parts_limit = -1,
                                                              .left_musd = INT64_MAX};
    a->project_names[a->in.projects_n] = name;
    return a->in.projects_n++;
}

void forecast_facts_add_plan(struct forecast_facts *a, const struct submit *s)
{
    const struct spec *spec = s->spec;
    int index_of[SPEC_STAGES_MAX];
    int64_t task_id = 0;
    memset(index_of, -1, sizeof index_of);
    for (int i = 0; i < spec->stages_n; i++) {
        const struct spec_stage *sp = spec->stages[i];
        const struct submit_stage *from = &s->stages[i];
        struct forecast_facts_stage *own = NULL;
        index_of[i] = a->in.stages_n;
        struct forecast_stage *st = stage_add(a, &own);
        st->campaign_id = INT64_MAX; /* newer than any stage */
        st->stage_id = i + 1;
        st->campaign_i = a->in.campaigns_n;
        st->spec = spec;
        st->stage = sp;
        set_needs(st, spec, index_of);
        st->may_start = true;
        stage_defaults(st);
        for (int64_t k = 0; k < from->parts; k++) {
            size_t at = (size_t)k * (size_t)sp->per_part;
            int64_t size = at < from->listing.n ? from->listing.at[at].size : 0;
            task_id++;
            part_add(own, &(struct forecast_part){
                              .task_id = task_id, .seq = (uint32_t)k, .size_mb = size_mb_of(size)});
        }
        enum market market = sp->spot ? MARKET_SPOT : MARKET_ON_DEMAND;
        expect_mean(st, own);
        for (int k = 0; k < sp->instance_type_n; k++) {
            if (forecast_slots_find(&a->slots, sp->instance_type[k], market) < 0) {
                (void)forecast_slots_add(&a->slots, sp->instance_type[k], market);
            }
        }
    }
    a->in.target_i = a->in.campaigns_n;
    *campaign_add(a) = (struct forecast_campaign){
        .campaign_id = INT64_MAX,
        .project_i = project_of_plan(a, spec->project),
        .priority = spec->priority,
        .weight = spec->weight,
        .parts_limit = spec->parts_limit,
        .left_musd = spec->budget_musd < 0 ? INT64_MAX : spec->budget_musd};
    settle_pointers(a);
}

int forecast_facts_stage(const struct forecast_facts *a, const char *name)
{
    int first = -1;
    for (int i = 0; i < a->in.stages_n; i++) {
        const struct forecast_stage *st = &a->stages[i];
        if (st->campaign_i != a->in.target_i) {
            continue;
        }
        first = first < 0 ? i : first;
        if (name != NULL ? strcmp(name, st->stage->name) == 0 : st->parts_n + st->jobs_n > 0) {
            return i;
        }
    }
    return name != NULL ? -1 : first;
}

/* The forecast would reject a type without a known price: report it here with a remedy. */
static void check_type(const struct forecast_facts *a, const struct what_if *w, struct faults *f)
{
    if (w->instance_type[0] == '\0') {
        return;
    }
    int i = forecast_slots_find(&a->slots, w->instance_type, MARKET_ON_DEMAND);
    bool priced = i >= 0 && a->slots.at[i].price_musd_per_hour >= 0;
    bool limited = w->slots >= 0 || (i >= 0 && a->slots.at[i].quota >= 0);
    if (!priced || !limited) {
        faults_add(f, (struct position){1, 1}, "type", "unknown_type",
                   priced ? "give slots= with it" : "drover quotas lists the types that are known",
                   "no %s is known here for %s", priced ? "quota" : "price", w->instance_type);
    }
}

bool forecast_facts_what_if(struct api_req *r, const struct forecast_facts *a, struct what_if *ret,
                            struct err *err)
{
    if (r->faults == NULL) {
        r->faults = arena_alloc(&r->arena, sizeof *r->faults);
    }
    if (!what_if_parse(str_of(req_query(r, "what_if")), ret, r->faults)) {
        return err_set(err, ERR_INVALID, "what_if cannot be read");
    }
    check_type(a, ret, r->faults);
    if (ret->stage[0] != '\0' && forecast_facts_stage(a, ret->stage) < 0) {
        faults_add(r->faults, (struct position){1, 1}, "stage", "unknown_stage",
                   "a stage of this campaign that is to run", "there is no %s", ret->stage);
    }
    return r->faults->n == 0 || err_set(err, ERR_INVALID, "what_if cannot be tried");
}
