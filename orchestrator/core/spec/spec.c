/* Reads a whole campaign file: the keys besides `stages`, and the dependencies between stages. */
#include "spec.h"
#include "common/cleanup.h"
#include "common/time_text.h"
#include "spec_parse.h"
#include "spec_read.h"
#include <ctype.h>
#include <stdio.h>

#define DEADLINE_TEXT_MAX 40

struct read_campaign {
    struct spec *spec;
    struct read_stage stages[SPEC_STAGES_MAX];
    int stages_n;
};

static bool name_ok(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > 63 || !isalnum((unsigned char)s[0])) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)s[i]) && strchr("._-", s[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static void read_name(struct spec_reader *r, const struct spec_node *top, const char *key,
                      bool required, const char **ret)
{
    struct spec_node at;
    if (!spec_child(r, top, key, required, &at) || !spec_text(r, &at, BRACES_VARS, 256, ret)) {
        return;
    }
    if (!name_ok(*ret)) {
        spec_fault(r, &at, "pattern", "letters, digits, '.', '_' and '-', 63 at most",
                   "'%.80s' cannot be a %s", *ret, key);
    }
}

static bool var_name_ok(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= 64 && !isdigit((unsigned char)s[0]) &&
           s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0';
}

static void add_var(struct spec_reader *r, const char *key, const char *value)
{
    r->vars[r->vars_n++] = (struct spec_pair){key, value};
}

/* A variable may use those above it. {bucket} is droverd's setting when the file has none. */
static void read_vars(struct spec_reader *r, const struct spec_node *top)
{
    struct spec_node at;
    bool has = spec_child(r, top, "vars", false, &at) && spec_is_map(r, &at, "name: value, ...");
    if ((!has || yaml_get(at.node, "bucket") == NULL) && r->defaults->bucket != NULL) {
        bool scheme = strncmp(r->defaults->bucket, "s3://", 5) == 0;
        add_var(r, "bucket",
                arena_printf(r->a, "%s%.1000s", scheme ? "" : "s3://", r->defaults->bucket));
    }
    if (has && at.node->n > SPEC_VARS_MAX - 1) {
        spec_fault(r, &at, "limit", "", "%zu variables; at most %d are allowed", at.node->n,
                   SPEC_VARS_MAX - 1);
        return;
    }
    for (size_t i = 0; has && i < at.node->n; i++) {
        const char *key = at.node->keys[i];
        struct spec_node v = {&at, key, at.node->items[i], at.node->items[i]->pos};
        const char *value = "";
        if (!var_name_ok(key) || spec_is_task_variable(str_of(key))) {
            spec_fault(r, &v, "pattern", "letters, digits and _; none of part, uri, stem, ...",
                       "'%.64s' cannot name a variable", key);
            continue;
        }
        (void)spec_scalar(r, &v, BRACES_VARS, 1024, &value);
        add_var(r, arena_strndup(r->a, key, strlen(key)), value); /* known, even when faulty */
    }
}

static void read_instances(struct spec_reader *r, const struct spec_node *p, struct spec *s)
{
    if (!spec_is_map(r, p, "{ml.c5.18xlarge: 16}")) {
        return;
    }
    if (p->node->n > ARRAY_LEN(s->instances)) {
        spec_fault(r, p, "limit", "", "%zu types; at most %zu are allowed", p->node->n,
                   ARRAY_LEN(s->instances));
        return;
    }
    for (size_t i = 0; i < p->node->n; i++) {
        const char *key = p->node->keys[i];
        struct spec_node at = {p, key, p->node->items[i], p->node->items[i]->pos};
        int64_t n;
        if (!spec_instance_type_ok(key)) {
            at.pos = p->node->key_pos[i];
            spec_fault(r, &at, "pattern", "like ml.c5.18xlarge", "'%.64s' is no instance type",
                       key);
        } else if (spec_i64(r, &at, 1, 100000, &n)) {
            const char *name = arena_strndup(r->a, key, strlen(key));
            s->instances[s->instances_n++] = (struct spec_limit){name, n};
            r->named_types[r->named_types_n++] = name;
        }
    }
}

static void read_deadline(struct spec_reader *r, const struct spec_node *p, struct spec *s)
{
    const char *text;
    struct err ignored = ERR_INIT;
    if (spec_text(r, p, BRACES_VARS, DEADLINE_TEXT_MAX, &text) &&
        (text[0] == '\0' || text[strlen(text) - 1] != 'Z' ||
         !clock_parse_rfc3339(text, &s->deadline_us, &ignored))) {
        spec_fault(r, p, "pattern", "a time of UTC, like 2026-12-01T18:00:00Z",
                   "'%.40s' is no time", text);
    }
}

static void read_limits(struct spec_reader *r, const struct spec_node *top, struct spec *s)
{
    struct spec_node p;
    struct spec_node at;
    int64_t n;
    if (!spec_child(r, top, "limits", false, &p) ||
        !spec_is_map(r, &p, "{parts: 16, priority: 50}")) {
        return;
    }
    spec_check_map(r, &p, SPEC_MAP_LIMITS);
    if (spec_child(r, &p, "parts", false, &at)) {
        (void)spec_i64(r, &at, 1, 1000000, &s->parts_limit);
    }
    if (spec_child(r, &p, "priority", false, &at) && spec_i64(r, &at, 0, 100, &n)) {
        s->priority = (int)n;
    }
    if (spec_child(r, &p, "weight", false, &at)) {
        (void)spec_i64(r, &at, 1, SPEC_WEIGHT_MAX, &s->weight);
    }
    if (spec_child(r, &p, "deadline", false, &at)) {
        read_deadline(r, &at, s);
    }
    if (spec_child(r, &p, "instances", false, &at)) {
        read_instances(r, &at, s);
    }
}

static struct spec_stage *stage_named(const struct read_campaign *c, const char *name)
{
    for (int i = 0; i < c->stages_n; i++) {
        if (strcmp(c->stages[i].stage->name, name) == 0) {
            return c->stages[i].stage;
        }
    }
    return NULL;
}

/* budget.stages: {download: {total: 900 USD, per_task: 40 USD}} */
static void read_stage_budgets(struct spec_reader *r, const struct spec_node *p,
                               struct read_campaign *c)
{
    if (!spec_is_map(r, p, "{download: {total: 900 USD}}")) {
        return;
    }
    for (size_t i = 0; i < p->node->n; i++) {
        const char *name = p->node->keys[i];
        struct spec_node one = {p, name, p->node->items[i], p->node->key_pos[i]};
        struct spec_stage *s = stage_named(c, name);
        const char *names[SPEC_STAGES_MAX] = {NULL};
        for (int k = 0; k < c->stages_n; k++) {
            names[k] = c->stages[k].stage->name;
        }
        if (s == NULL) {
            char hint[256];
            spec_guess(name, names, (size_t)c->stages_n, hint, sizeof hint);
            spec_fault(r, &one, "unknown_stage", hint, "there is no stage '%.64s'", name);
            continue;
        }
        one.pos = p->node->items[i]->pos;
        if (!spec_is_map(r, &one, "{total: 900 USD, per_task: 40 USD}")) {
            continue;
        }
        struct spec_node at;
        spec_check_map(r, &one, SPEC_MAP_STAGE_BUDGET);
        if (spec_child(r, &one, "total", false, &at)) {
            (void)spec_money(r, &at, &s->budget_musd);
        }
        if (spec_child(r, &one, "per_task", false, &at)) {
            (void)spec_money(r, &at, &s->per_task_musd);
        }
    }
}

/* warn_at: [50%, 80%], stored in ascending order without duplicates; []: no warning. */
static void read_warn_at(struct spec_reader *r, const struct spec_node *p, struct spec *s)
{
    if (!spec_is_list(r, p, WARNS_MAX, "[50%, 80%]")) {
        return;
    }
    s->warn_at_n = 0;
    for (size_t i = 0; i < p->node->n; i++) {
        char key[24];
        const struct spec_node one = spec_item(p, i, key);
        int64_t ppm;
        if (!spec_percent(r, &one, &ppm)) {
            continue;
        }
        if (ppm == 0) {
            spec_fault(r, &one, "range", "more than 0%", "a warning before anything is spent");
            continue;
        }
        int at = s->warn_at_n;
        while (at > 0 && s->warn_at_ppm[at - 1] > ppm) {
            at--;
        }
        if (at > 0 && s->warn_at_ppm[at - 1] == ppm) {
            spec_fault(r, &one, "duplicate", "leave it out", "'%.40s' is listed twice",
                       one.node->text);
            continue;
        }
        memmove(&s->warn_at_ppm[at + 1], &s->warn_at_ppm[at],
                (size_t)(s->warn_at_n - at) * sizeof s->warn_at_ppm[0]);
        s->warn_at_ppm[at] = ppm;
        s->warn_at_n++;
    }
}

static void read_budget(struct spec_reader *r, const struct spec_node *top, struct read_campaign *c)
{
    const char *at_limits[AT_LIMIT_COUNT];
    struct spec_node p;
    struct spec_node at;
    int i;
    if (!spec_child(r, top, "budget", false, &p)) {
        return;
    }
    if (p.node->kind == YAML_STRING) { /* budget: 900 USD */
        (void)spec_money(r, &p, &c->spec->budget_musd);
        return;
    }
    if (!spec_is_map(r, &p, "{total: 900 USD}")) {
        return;
    }
    spec_check_map(r, &p, SPEC_MAP_BUDGET);
    if (spec_child(r, &p, "total", false, &at)) {
        (void)spec_money(r, &at, &c->spec->budget_musd);
    }
    for (int k = 0; k < AT_LIMIT_COUNT; k++) {
        at_limits[k] = at_limit_name((enum at_limit)k);
    }
    if (spec_child(r, &p, "at_limit", false, &at) &&
        spec_choice(r, &at, at_limits, ARRAY_LEN(at_limits), NULL, &i)) {
        c->spec->at_limit = (enum at_limit)i;
    }
    if (spec_child(r, &p, "warn_at", false, &at)) {
        read_warn_at(r, &at, c->spec);
    }
    if (spec_child(r, &p, "stages", false, &at)) {
        read_stage_budgets(r, &at, c);
    }
}

static void read_security(struct spec_reader *r, const struct spec_node *top)
{
    struct spec_node p;
    struct spec_node at;
    r->role = r->defaults->role;
    if (!spec_child(r, top, "security", false, &p) ||
        !spec_is_map(r, &p, "{role: \"arn:aws:iam::...\"}")) {
        return;
    }
    spec_check_map(r, &p, SPEC_MAP_SECURITY);
    if (spec_child(r, &p, "role", false, &at)) {
        r->role = r->role == NULL ? "" : r->role; /* a faulty one is not missing besides */
        (void)spec_role(r, &at, &r->role);
    }
    if (spec_child(r, &p, "vpc", false, &at)) {
        spec_read_vpc(r, &at, r->subnets, &r->subnets_n, r->security_groups, &r->security_groups_n);
    }
    if (spec_child(r, &p, "encrypt_traffic", false, &at)) {
        (void)spec_bool(r, &at, &r->encrypt_traffic);
    }
    if (spec_child(r, &p, "volume_kms_key", false, &at)) {
        (void)spec_kms_key(r, &at, &r->volume_kms_key);
    }
    if (spec_child(r, &p, "output_kms_key", false, &at)) {
        (void)spec_kms_key(r, &at, &r->output_kms_key);
    }
}

static void read_role(struct spec_reader *r, const struct read_stage *s, bool *said)
{
    if (s->stage->role == NULL && s->stage->instance_type_n > 0 && !*said) {
        *said = true; /* once is enough */
        spec_fault(r, &s->at, "required", "security: {role: \"arn:aws:iam::...:role/...\"}",
                   "no role is named, and no default is set (DROVER_ROLE_ARN)");
    }
}

/* A stage of the file, as one stage or as the rows of its matrix. */
static void read_stage(struct spec_reader *r, const struct spec_node *list, size_t i,
                       struct spec_row *rows, struct read_campaign *c, bool *role_said)
{
    char key[24];
    bool matrix;
    struct spec_node at = spec_item(list, i, key);
    const struct yaml_node *name = yaml_get(at.node, "name");
    bool named = name != NULL && name->kind == YAML_STRING && name->text_n > 0;
    at.key = named ? name->text : key; /* stages.download.fan_out reads better than stages.1 */
    int room = SPEC_STAGES_MAX - c->stages_n - (int)(list->node->n - i - 1);
    int n = spec_rows(r, list, &at, room, rows, &matrix);
    const struct spec_stage *made[SPEC_STAGES_MAX];
    for (int k = 0; k < n; k++) {
        struct read_stage *s = &c->stages[c->stages_n++];
        s->at = at;
        if (!named) {
            memcpy(s->key, key, sizeof s->key);
            s->at.key = s->key;
        }
        s->at.node = rows[k].stage;
        s->matrix = matrix && named ? name->text : NULL;
        s->stage = arena_alloc(r->a, sizeof *s->stage);
        r->row_vars = rows[k].vars;
        r->row_vars_n = rows[k].vars_n;
        memset(r->row_vars_used, 0, sizeof r->row_vars_used);
        spec_stage_read(r, &s->at, s->stage);
        spec_scale_row(r, &rows[k], s->matrix, s->stage);
        if (r->judged) {
            spec_rows_check(r, &s->at, &rows[k]);
        }
        r->row_vars_n = 0;
        made[k] = s->stage;
        read_role(r, s, role_said);
    }
    at.node = rows[0].stage;
    spec_gate_rows(r, &at, made, n);
}

static void read_stages(struct spec_reader *r, const struct spec_node *p, struct read_campaign *c)
{
    AUTO_FREE struct spec_row *rows = xcalloc(SPEC_STAGES_MAX, sizeof *rows);
    bool role_said = false;
    if (!spec_is_list(r, p, SPEC_STAGES_MAX, "- {name: download, worker: download, ...}")) {
        return;
    }
    if (p->node->n == 0) {
        spec_fault(r, p, "required", "- {name: download, worker: download, ...}", "no stage");
    }
    for (size_t i = 0; i < p->node->n; i++) {
        read_stage(r, p, i, rows, c, &role_said);
    }
}

static bool is_row_of(const struct read_stage *s, const char *name)
{
    return s->matrix != NULL && strcmp(s->matrix, name) == 0;
}

/* A stage that needs a stage with a matrix needs all its rows. */
static void expand_needs(struct read_campaign *c)
{
    for (int i = 0; i < c->stages_n; i++) {
        struct spec_stage *s = c->stages[i].stage;
        const char *all[SPEC_STAGES_MAX] = {NULL};
        int n = 0;
        for (int k = 0; k < s->needs_n; k++) {
            int before = n;
            for (int j = 0; j < c->stages_n && n < SPEC_STAGES_MAX; j++) {
                if (is_row_of(&c->stages[j], s->needs[k]) &&
                    !is_row_of(&c->stages[i], s->needs[k])) {
                    all[n++] = c->stages[j].stage->name;
                }
            }
            if (n == before && n < SPEC_STAGES_MAX) {
                all[n++] = s->needs[k];
            }
        }
        memcpy(s->needs, all, (size_t)n * sizeof all[0]);
        s->needs_n = n;
    }
}

static void check_names(struct spec_reader *r, const struct read_campaign *c)
{
    for (int i = 0; i < c->stages_n; i++) {
        const char *name = c->stages[i].stage->name;
        for (int j = 0; j < i && name[0] != '\0'; j++) {
            if (strcmp(name, c->stages[j].stage->name) == 0) {
                struct spec_node at;
                (void)spec_child(r, &c->stages[i].at, "name", false, &at);
                spec_fault(r, &at, "duplicate", "a name of its own",
                           "two stages are named '%.64s'; the other is in line %d", name,
                           c->stages[j].at.pos.line);
                break;
            }
        }
    }
}

/* Every name in `needs` must be another stage. */
static bool check_needs(struct spec_reader *r, const struct read_campaign *c)
{
    bool good = true;
    const char *names[SPEC_STAGES_MAX] = {NULL};
    for (int i = 0; i < c->stages_n; i++) {
        names[i] = c->stages[i].stage->name;
    }
    for (int i = 0; i < c->stages_n; i++) {
        const struct spec_stage *s = c->stages[i].stage;
        struct spec_node at = c->stages[i].at;
        (void)spec_child(r, &c->stages[i].at, "needs", false, &at);
        for (int k = 0; k < s->needs_n; k++) {
            char hint[256];
            bool itself =
                strcmp(s->needs[k], s->name) == 0 || is_row_of(&c->stages[i], s->needs[k]);
            if (!itself && stage_named(c, s->needs[k]) != NULL) {
                continue;
            }
            good = false;
            spec_guess(s->needs[k], names, (size_t)c->stages_n, hint, sizeof hint);
            spec_fault(r, &at, itself ? "cycle" : "unknown_stage", itself ? "leave it out" : hint,
                       itself ? "stage '%.64s' needs itself" : "there is no stage '%.64s'",
                       s->needs[k]);
        }
    }
    return good;
}

static bool placed(const struct spec *s, const char *name)
{
    return spec_stage_find(s, name) >= 0;
}

static bool all_placed(const struct spec *spec, const struct spec_stage *s)
{
    for (int k = 0; k < s->needs_n; k++) {
        if (!placed(spec, s->needs[k])) {
            return false;
        }
    }
    return true;
}

/* Sorts by dependency, otherwise by the order of the file. Stages that remain form a cycle. */
static void order_stages(struct spec_reader *r, struct read_campaign *c)
{
    bool done[SPEC_STAGES_MAX] = {false};
    bool moved = true;
    while (moved) {
        moved = false;
        for (int i = 0; i < c->stages_n; i++) {
            if (!done[i] && all_placed(c->spec, c->stages[i].stage)) {
                c->spec->stages[c->spec->stages_n++] = c->stages[i].stage;
                done[i] = moved = true;
                break;
            }
        }
    }
    char names[160] = "";
    size_t n = 0;
    int first = -1;
    for (int i = 0; i < c->stages_n; i++) {
        if (!done[i] && n < sizeof names) {
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", first < 0 ? "" : ", ",
                                  c->stages[i].stage->name);
            first = first < 0 ? i : first;
        }
    }
    if (first >= 0) {
        struct spec_node at = c->stages[first].at;
        (void)spec_child(r, &c->stages[first].at, "needs", false, &at);
        spec_fault(r, &at, "cycle", "remove one of their needs", "circular needs: %s", names);
    }
}

static void read_campaign(struct spec_reader *r, const struct spec_node *top,
                          struct read_campaign *c)
{
    struct spec_node at;
    int64_t version;
    spec_check_map(r, top, SPEC_MAP_CAMPAIGN);
    if (spec_child(r, top, "version", false, &at)) {
        (void)spec_i64(r, &at, 1, 1, &version);
    }
    read_vars(r, top);
    read_name(r, top, "name", true, &c->spec->name);
    read_name(r, top, "project", false, &c->spec->project);
    if (spec_child(r, top, "tags", false, &at)) {
        spec_read_tags(r, &at, ARRAY_LEN(c->spec->tags), c->spec->tags, &c->spec->tags_n);
        r->tags_n = c->spec->tags_n;
    }
    read_limits(r, top, c->spec);
    read_security(r, top);
    if (spec_child(r, top, "warm_pool", false, &at)) {
        spec_read_warm(r, &at, &r->warm);
    }
    if (spec_child(r, top, "retry", false, &at)) {
        spec_read_retry(r, &at, r->retry);
    }
    spec_default_output(r);
    if (spec_child(r, top, "stages", true, &at)) {
        read_stages(r, &at, c);
    }
    read_budget(r, top, c);
    check_names(r, c);
    expand_needs(c);
    bool ordered = check_needs(r, c);
    if (ordered) {
        order_stages(r, c);
    }
    spec_places(r, c->stages, c->stages_n, ordered);
    spec_endpoint_link(r, c->stages, c->stages_n);
    spec_filesystem_link(r, c->stages, c->stages_n);
}

/* Orders faults by their position in the file. */
static int by_position(const void *a, const void *b)
{
    const struct fault *x = a;
    const struct fault *y = b;
    if (x->pos.line != y->pos.line) {
        return x->pos.line < y->pos.line ? -1 : 1;
    }
    return x->pos.column < y->pos.column ? -1 : x->pos.column > y->pos.column;
}

bool spec_parse(struct str text, const struct spec_defaults *d, struct arena *a, struct spec **ret,
                struct faults *faults)
{
    CLEANUP(yaml_freep)
    struct yaml_doc *doc = NULL;
    int before = faults->n;
    if (text.n > SPEC_TEXT_MAX) {
        faults_add(faults, (struct position){1, 1}, "", "limit", "", "longer than %d bytes",
                   SPEC_TEXT_MAX);
        return false;
    }
    if (!yaml_parse_whole(text, &doc, faults)) {
        if (faults->n > before && strcmp(faults->at[before].code, "empty") == 0) {
            (void)snprintf(faults->at[before].hint, sizeof faults->at[0].hint,
                           "drover init laion-download writes a file to begin with");
        }
        return false;
    }
    struct spec_reader r = {.a = a, .faults = faults, .defaults = d};
    r.yaml_faults_n = faults->n;
    r.warm = (struct spec_warm){SPEC_KEEP_ALIVE_AUTO, -1, true};
    const struct yaml_node *root = yaml_root(doc);
    const struct spec_node top = {.node = root, .pos = root->pos};
    if (!spec_is_map(&r, &top, "version: 1, name: ..., stages: [...]")) {
        return false;
    }
    struct spec *s = arena_alloc(a, sizeof *s);
    *s = (struct spec){
        .name = "",
        .project = "default",
        .parts_limit = -1,
        .priority = 50,
        .weight = SPEC_WEIGHT_DEFAULT,
        .budget_musd = -1,
        .warn_at_ppm = {500000, 800000},
        .warn_at_n = 2,
    };
    struct read_campaign *c = xcalloc(1, sizeof *c);
    c->spec = s;
    read_campaign(&r, &top, c);
    spec_no_secrets_below(&r, &top);
    free(c);
    if (faults->n > before) {
        qsort(faults->at + before, (size_t)(faults->n - before), sizeof faults->at[0], by_position);
        return false;
    }
    *ret = s;
    return true;
}
