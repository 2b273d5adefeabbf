/* From the stages of the file to those of the campaign: `extends` lays a stage's keys over those of
 * another, `matrix` makes a stage of each of its rows. Both work on the nodes of the file, which
 * keep their positions: a fault points at what is written. */
#include "spec_read.h"
#include <ctype.h>
#include <stdio.h>

#define AXES_MAX       8
#define STAGE_KEYS_MAX 128 /* more than a stage has; bounds what is copied for each row */

struct axis {
    const char *key;
    struct position pos;
    struct yaml_node *const *items;
    size_t n;
};
struct matrix {
    struct axis axes[AXES_MAX];
    int axes_n;
    const struct yaml_node *include[SPEC_STAGES_MAX];
    int include_n;
    size_t rows_n; /* of the axes */
    const char *scales_with[SPEC_SCALES_MAX];
    int scales_with_n;
};
struct label { /* what tells a row's stage from the others */
    char text[SPEC_ROW_LABEL_MAX + 1];
    size_t n;
};

static struct yaml_node *copy_map(struct spec_reader *r, const struct yaml_node *m, size_t room)
{
    struct yaml_node *c = arena_alloc(r->a, sizeof *c);
    *c = *m;
    c->items = arena_alloc(r->a, (m->n + room + 1) * sizeof(struct yaml_node *));
    c->keys = arena_alloc(r->a, (m->n + room + 1) * sizeof(const char *));
    c->key_pos = arena_alloc(r->a, (m->n + room + 1) * sizeof(struct position));
    for (size_t i = 0; i < m->n; i++) {
        c->items[i] = m->items[i];
        c->keys[i] = m->keys[i];
        c->key_pos[i] = m->key_pos[i];
    }
    return c;
}

/* The map must have room. */
static void put(struct yaml_node *m, const char *key, struct position pos, struct yaml_node *item)
{
    size_t i = 0;
    while (i < m->n && strcmp(m->keys[i], key) != 0) {
        i++;
    }
    m->keys[i] = key;
    m->key_pos[i] = pos;
    m->items[i] = item;
    m->n = MAX(m->n, i + 1);
}

static void leave_out(struct yaml_node *m, const char *key)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(m->keys[i], key) != 0) {
            m->items[kept] = m->items[i];
            m->keys[kept] = m->keys[i];
            m->key_pos[kept++] = m->key_pos[i];
        }
    }
    m->n = kept;
}

/* Maps of names the user chose are laid over each other name by name; any other value is replaced
 * as a whole. */
static bool lies_over(const char *key)
{
    return strcmp(key, "hyperparameters") == 0 || strcmp(key, "environment") == 0 ||
           strcmp(key, "tags") == 0;
}

static void lay(struct spec_reader *r, struct yaml_node *m, const char *key, struct position pos,
                struct yaml_node *item)
{
    const struct yaml_node *below = yaml_get(m, key);
    if (below != NULL && lies_over(key) && below->kind == YAML_MAP && item->kind == YAML_MAP &&
        below->n <= SPEC_PAIRS_MAX && item->n <= SPEC_PAIRS_MAX) {
        struct yaml_node *both = copy_map(r, below, item->n);
        both->pos = item->pos;
        for (size_t i = 0; i < item->n; i++) {
            put(both, item->keys[i], item->key_pos[i], item->items[i]);
        }
        item = both;
    }
    put(m, key, pos, item);
}

static const struct yaml_node *stage_called(const struct spec_node *stages, const char *name)
{
    for (size_t i = 0; i < stages->node->n; i++) {
        const struct yaml_node *at = yaml_get(stages->node->items[i], "name");
        if (at != NULL && at->kind == YAML_STRING && strcmp(at->text, name) == 0) {
            return stages->node->items[i];
        }
    }
    return NULL;
}

static void fault_unknown_stage(struct spec_reader *r, const struct spec_node *stages,
                                const struct spec_node *at)
{
    const char *names[SPEC_STAGES_MAX] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < stages->node->n && n < ARRAY_LEN(names); i++) {
        const struct yaml_node *name = yaml_get(stages->node->items[i], "name");
        if (name != NULL && name->kind == YAML_STRING && stages->node->items[i] != at->up->node) {
            names[n++] = name->text;
        }
    }
    char hint[256];
    spec_guess(at->node->text, names, n, hint, sizeof hint);
    spec_fault(r, at, "unknown_stage", n == 0 ? "leave it out" : hint, "there is no stage '%.64s'",
               at->node->text);
}

/* The stage that p extends; NULL: there is none. Only the stage itself has a fault of it, `quiet`
 * for those that extend it. */
static const struct yaml_node *extended(struct spec_reader *r, const struct spec_node *stages,
                                        const struct spec_node *p, bool quiet)
{
    struct spec_node at;
    (void)spec_child(r, p, "extends", false, &at);
    bool text = at.node->kind == YAML_STRING;
    const struct yaml_node *below = text ? stage_called(stages, at.node->text) : NULL;
    if (below == NULL && !text && !quiet) {
        spec_fault(r, &at, "type", "extends: NAME", "the name of one stage is needed here");
    } else if (below == NULL && !quiet) {
        fault_unknown_stage(r, stages, &at);
    }
    return below;
}

/* p extends itself by way of chain[n]: one fault for the whole circle, at its first stage. */
static void fault_circle(struct spec_reader *r, const struct spec_node *p,
                         const struct yaml_node *const *chain, int n)
{
    struct spec_node at;
    for (int i = 1; i < n; i++) {
        if (chain[i]->pos.line < p->node->pos.line) {
            return;
        }
    }
    (void)spec_child(r, p, "extends", false, &at);
    spec_fault(r, &at, "cycle", "leave it out",
               n == 1 ? "the stage extends itself" : "the stage extends itself by way of others");
}

/* All keys of stage p, its own over those of what it extends. NULL: that cannot be said, and a
 * fault there or at another stage says why. */
static struct yaml_node *all_keys(struct spec_reader *r, const struct spec_node *stages,
                                  const struct spec_node *p)
{
    const struct yaml_node *chain[SPEC_STAGES_MAX];
    int n = 0;
    const struct yaml_node *m = p->node;
    while (m != NULL && m->n <= STAGE_KEYS_MAX && yaml_get(m, "extends") != NULL) {
        const struct spec_node at = {p->up, p->key, m, m->pos};
        if (n == SPEC_STAGES_MAX) {
            return NULL; /* it extends a circle */
        }
        chain[n++] = m;
        m = extended(r, stages, &at, m != p->node);
        if (m == p->node) {
            fault_circle(r, p, chain, n);
            return NULL;
        }
    }
    if (m == NULL || m->n > STAGE_KEYS_MAX) {
        return NULL;
    }
    struct yaml_node *all = copy_map(r, m, (size_t)n * STAGE_KEYS_MAX);
    while (n > 0) {
        const struct yaml_node *over = chain[--n];
        leave_out(all, "name");
        for (size_t i = 0; i < over->n; i++) {
            lay(r, all, over->keys[i], over->key_pos[i], over->items[i]);
        }
    }
    leave_out(all, "extends");
    all->pos = p->node->pos;
    return all->n > STAGE_KEYS_MAX ? NULL : all;
}

/* In lower case, with one hyphen for all that cannot be in a stage's name. */
static void label_add(struct label *l, const char *text)
{
    bool gap = l->n > 0;
    for (; *text != '\0' && l->n + 1 < sizeof l->text; text++) {
        if (!isalnum((unsigned char)*text)) {
            gap = l->n > 0;
            continue;
        }
        if (gap) {
            l->text[l->n++] = '-';
            gap = false;
        }
        if (l->n + 1 < sizeof l->text) {
            l->text[l->n++] = (char)tolower((unsigned char)*text);
        }
    }
    l->text[l->n] = '\0';
}

static bool is_scalar(const struct yaml_node *n)
{
    return n->kind != YAML_MAP && n->kind != YAML_LIST && n->kind != YAML_NULL;
}

/* A variable of the row, its text with the file's variables in it. `only`: it is nothing else. The
 * value of a key of the stage may differ from task to task: then it is known without a text. */
static void add_variable(struct spec_reader *r, struct spec_row *row, const struct spec_node *at,
                         bool only)
{
    if (row->vars_n == SPEC_ROW_VARS_MAX) {
        spec_fault(r, at, "limit", "", "more than %d values in one row", SPEC_ROW_VARS_MAX);
        return;
    }
    const struct spec_node value = {at->up, at->key, at->node, at->node->pos};
    const char *text = only ? "" : NULL;
    struct faults *const faults = r->faults;
    const int said = faults->n, dropped = faults->dropped;
    (void)spec_scalar(r, &value, BRACES_VARS, SPEC_STRING_MAX, &text);
    if (!only) { /* it is judged as what it is, a key of the stage */
        faults->n = said;
        faults->dropped = dropped;
    }
    row->vars[row->vars_n] = (struct spec_pair){arena_printf(r->a, "matrix.%.64s", at->key), text};
    row->only[row->vars_n] = only;
    row->pos[row->vars_n++] = at->pos;
}

/* One value of a row: a key of the stage, one hyperparameter by its dotted name, or a variable. */
static void set_value(struct spec_reader *r, struct spec_row *row, struct yaml_node *stage,
                      const struct spec_node *at, struct yaml_node *value)
{
    const char *dot = strchr(at->key, '.');
    if (dot != NULL) {
        const char *map = arena_strndup(r->a, at->key, (size_t)(dot - at->key));
        struct yaml_node *one =
            copy_map(r, &(struct yaml_node){.kind = YAML_MAP, .pos = value->pos}, 1);
        put(one, dot + 1, at->pos, value);
        lay(r, stage, map, at->pos, one);
    } else if (spec_is_stage_key(at->key)) {
        lay(r, stage, at->key, at->pos, value);
    }
    if (is_scalar(value)) {
        add_variable(r, row, at, dot == NULL && !spec_is_stage_key(at->key));
    }
}

/* True when a row may have the key: one of the stage, hyperparameters.X, or a variable's name. */
static bool may_vary(struct spec_reader *r, const struct spec_node *at)
{
    static const char *const fixed[] = {"name", "extends", "matrix", "kind"};
    const char *dot = strchr(at->key, '.');
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        if (strcmp(at->key, fixed[i]) == 0) {
            spec_fault(r, at, "conflict", "leave it out, or write a stage of its own",
                       "'%s' cannot differ from row to row", fixed[i]);
            return false;
        }
    }
    if (dot != NULL && (dot[1] == '\0' || (strncmp(at->key, "hyperparameters.", 16) != 0 &&
                                           strncmp(at->key, "environment.", 12) != 0))) {
        spec_fault(r, at, "pattern", "hyperparameters.NAME or environment.NAME",
                   "'%.64s' is no key of a row", at->key);
        return false;
    }
    if (strlen(at->key) > 64 && dot == NULL) {
        spec_fault(r, at, "limit", "", "a name of at most 64 bytes is needed");
        return false;
    }
    return true;
}

static void check_values(struct spec_reader *r, const struct spec_node *axis)
{
    for (size_t i = 0; i < axis->node->n; i++) {
        char key[24];
        const struct spec_node one = spec_item(axis, i, key);
        bool scalar = is_scalar(one.node);
        if (!scalar && (strchr(axis->key, '.') != NULL || !spec_is_stage_key(axis->key))) {
            spec_fault(r, &one, "type", "[1, 2, 4, 8]", "one value is needed here");
        }
        for (size_t k = 0; scalar && k < i; k++) {
            const struct yaml_node *other = axis->node->items[k];
            if (is_scalar(other) && strcmp(other->text, one.node->text) == 0) {
                spec_fault(r, &one, "duplicate", "leave it out", "'%.64s' is listed twice",
                           other->text);
                break;
            }
        }
    }
}

/* NAME: [values]. A value in place of a list is a fault, and then taken as the only one. */
static void read_axis(struct spec_reader *r, const struct spec_node *at,
                      struct yaml_node *const *value, struct matrix *m)
{
    if (!may_vary(r, at)) {
        return;
    }
    bool list = spec_is_list(r, at, SPEC_STAGES_MAX, "[1, 2, 4, 8]");
    if (list && at->node->n == 0) {
        spec_fault(r, at, "required", "[1, 2, 4, 8]", "an empty list");
        return;
    }
    if (m->axes_n == AXES_MAX) {
        spec_fault(r, at, "limit", "include: [...] has the rows themselves",
                   "more than %d lists in one matrix", AXES_MAX);
        return;
    }
    if (list) {
        check_values(r, at);
    } else if (at->node->kind == YAML_LIST) {
        return; /* too long */
    }
    m->axes[m->axes_n++] =
        (struct axis){at->key, at->pos, list ? at->node->items : value, list ? at->node->n : 1};
}

static void read_include(struct spec_reader *r, const struct spec_node *p, struct matrix *m)
{
    if (!spec_is_list(r, p, SPEC_STAGES_MAX, "- {instance_count: 1}")) {
        return;
    }
    for (size_t i = 0; i < p->node->n; i++) {
        char key[24];
        const struct spec_node row = spec_item(p, i, key);
        if (!spec_is_map(r, &row, "{instance_count: 1, hyperparameters: {...}}")) {
            continue;
        }
        if (row.node->n == 0 || row.node->n > STAGE_KEYS_MAX) {
            spec_fault(r, &row, "limit", "{instance_count: 1}", "a row has 1 to %d keys",
                       STAGE_KEYS_MAX);
            continue;
        }
        m->include[m->include_n++] = row.node;
    }
}

static void read_matrix(struct spec_reader *r, const struct spec_node *p, int max, struct matrix *m)
{
    for (size_t i = 0; i < p->node->n; i++) {
        struct spec_node at = {p, p->node->keys[i], p->node->items[i], p->node->key_pos[i]};
        if (strcmp(at.key, "scales_with") == 0) {
            at.pos = at.node->pos.line > 0 ? at.node->pos : at.pos;
            m->scales_with_n = spec_scales_with(r, &at, m->scales_with);
        } else if (strcmp(at.key, "include") == 0) {
            at.pos = at.node->pos.line > 0 ? at.node->pos : at.pos;
            read_include(r, &at, m);
        } else {
            read_axis(r, &at, &p->node->items[i], m);
        }
    }
    m->rows_n = m->axes_n > 0;
    for (int i = 0; i < m->axes_n; i++) {
        m->rows_n = MIN(m->rows_n * m->axes[i].n, (size_t)1000000);
    }
    size_t all = m->rows_n + (size_t)m->include_n;
    if (all > (size_t)max) {
        spec_fault(r, p, "limit", "shorter lists, or a second campaign",
                   "%zu rows, each a stage: a campaign has at most %d stages", all,
                   SPEC_STAGES_MAX);
        m->rows_n = MIN(m->rows_n, (size_t)1);
        m->include_n = 0;
    }
}

/* Row k of the lists, the last list going round first. */
static void make_product(struct spec_reader *r, const struct spec_node *p, const struct matrix *m,
                         size_t k, struct yaml_node *stage, struct spec_row *row, struct label *l)
{
    size_t of[AXES_MAX] = {0};
    for (int a = m->axes_n - 1; a >= 0; a--) {
        of[a] = k % m->axes[a].n;
        k /= m->axes[a].n;
    }
    for (int a = 0; a < m->axes_n; a++) {
        const struct axis *x = &m->axes[a];
        struct yaml_node *value = x->items[of[a]];
        const struct spec_node at = {p, x->key, value, x->pos};
        char number[24];
        (void)snprintf(number, sizeof number, "%zu", of[a] + 1);
        label_add(l, is_scalar(value) ? value->text : number);
        set_value(r, row, stage, &at, value);
    }
}

static void make_include(struct spec_reader *r, const struct spec_node *p,
                         const struct yaml_node *from, struct yaml_node *stage,
                         struct spec_row *row, struct label *l)
{
    const struct yaml_node *name = yaml_get(from, "name");
    for (size_t i = 0; i < from->n; i++) {
        struct spec_node at = {p, from->keys[i], from->items[i], from->key_pos[i]};
        if (strcmp(at.key, "name") == 0) {
            struct label own = {.n = 0};
            label_add(&own, is_scalar(at.node) ? at.node->text : "");
            if (!is_scalar(at.node) || strcmp(own.text, at.node->text) != 0) {
                spec_fault(r, &at, "pattern", "like native or x4",
                           "a row's name is what follows the stage's: lower-case letters, digits "
                           "and hyphens");
            }
            continue;
        }
        if (!is_scalar(at.node) && strchr(at.key, '.') == NULL && !spec_is_stage_key(at.key)) {
            char hint[256];
            spec_guess_stage_key(at.key, hint, sizeof hint);
            spec_fault(r, &at, "unknown_key", hint, "unknown key '%.64s'", at.key);
        } else if (may_vary(r, &at)) {
            if (name == NULL && is_scalar(at.node)) {
                label_add(l, at.node->text);
            }
            set_value(r, row, stage, &at, from->items[i]);
        }
    }
    if (name != NULL && is_scalar(name)) {
        label_add(l, name->text);
    }
}

/* A name that the file gives to a row is used, or is a fault; only what is made of values may give
 * way to row1, row2, ... */
static void check_own_names(struct spec_reader *r, const struct spec_node *p,
                            const struct matrix *m, const struct yaml_node *name,
                            const struct label *labels)
{
    for (int i = 0; i < m->include_n; i++) {
        const struct yaml_node *from = m->include[i];
        const struct label *l = &labels[m->rows_n + (size_t)i];
        size_t k = 0, before = 0;
        while (k < from->n && strcmp(from->keys[k], "name") != 0) {
            k++;
        }
        if (k == from->n || !is_scalar(from->items[k]) || l->n == 0) {
            continue;
        }
        const struct spec_node at = {p, from->keys[k], from->items[k], from->key_pos[k]};
        while (strcmp(labels[before].text, l->text) != 0) {
            before++;
        }
        if (before < m->rows_n + (size_t)i) {
            spec_fault(r, &at, "duplicate", "another name", "two rows are called '%.64s'", l->text);
        } else if (name->text_n + 1 + l->n > SPEC_STAGE_NAME_MAX) {
            spec_fault(r, &at, "limit", "a shorter one",
                       "'%.64s-%.64s' is the stage's name: %d characters at most", name->text,
                       l->text, SPEC_STAGE_NAME_MAX);
        }
    }
}

/* NAME-LABEL; NAME-row1, NAME-row2, ... when labels are missing, equal or too long for a name. */
static void name_rows(struct spec_reader *r, const struct yaml_node *name, struct label *labels,
                      struct yaml_node *const *stages, int n)
{
    bool labelled = true;
    for (int i = 0; i < n; i++) {
        labelled =
            labelled && labels[i].n > 0 && name->text_n + 1 + labels[i].n <= SPEC_STAGE_NAME_MAX;
        for (int k = 0; labelled && k < i; k++) {
            labelled = strcmp(labels[k].text, labels[i].text) != 0;
        }
    }
    for (int i = 0; i < n; i++) {
        struct yaml_node *own = arena_alloc(r->a, sizeof *own);
        *own = *name;
        own->text = labelled ? arena_printf(r->a, "%s-%s", name->text, labels[i].text)
                             : arena_printf(r->a, "%s-row%d", name->text, i + 1);
        own->text_n = strlen(own->text);
        put(stages[i], "name", name->pos, own);
    }
}

/* The rows of matrix p over the keys of `all`. Gives their number; 0: there is none to speak of. */
static int make_rows(struct spec_reader *r, const struct spec_node *p, const struct yaml_node *all,
                     int max, struct spec_row *rows)
{
    struct matrix m = {.axes_n = 0};
    struct label labels[SPEC_STAGES_MAX] = {{.n = 0}};
    struct yaml_node *stages[SPEC_STAGES_MAX];
    const struct yaml_node *name = yaml_get(all, "name");
    if (!spec_is_map(r, p, "{instance_count: [1, 2, 4, 8]}, or none")) {
        return 0;
    }
    int before = r->faults->n;
    read_matrix(r, p, max, &m);
    int n = 0;
    for (size_t k = 0; k < m.rows_n + (size_t)m.include_n; k++, n++) {
        size_t own_n = k < m.rows_n ? AXES_MAX : m.include[k - m.rows_n]->n;
        stages[n] = copy_map(r, all, own_n);
        rows[n] = (struct spec_row){.stage = stages[n], .scales_with_n = m.scales_with_n};
        memcpy(rows[n].scales_with, m.scales_with, sizeof m.scales_with);
        if (k < m.rows_n) {
            make_product(r, p, &m, k, stages[n], &rows[n], &labels[n]);
        } else {
            make_include(r, p, m.include[k - m.rows_n], stages[n], &rows[n], &labels[n]);
        }
    }
    if (n == 0 && r->faults->n == before) {
        spec_fault(r, p, "required", "{instance_count: [1, 2, 4, 8]}, or include: [...]",
                   "a matrix without rows");
    }
    if (name == NULL || name->kind != YAML_STRING || !spec_stage_name_ok(name->text)) {
        return MIN(n, 1); /* the fault of the name says it once */
    }
    if (name->text_n + strlen("-row32") > SPEC_STAGE_NAME_MAX) {
        const struct spec_node at = {p->up, "name", name, name->pos};
        spec_fault(r, &at, "limit", "a shorter one",
                   "'%s' leaves no room for the rows' names: %d characters at most", name->text,
                   SPEC_STAGE_NAME_MAX - (int)strlen("-row32"));
        return MIN(n, 1);
    }
    check_own_names(r, p, &m, name, labels);
    name_rows(r, name, labels, stages, n);
    return n;
}

int spec_rows(struct spec_reader *r, const struct spec_node *stages, const struct spec_node *p,
              int max, struct spec_row rows[static SPEC_STAGES_MAX], bool *ret_matrix)
{
    struct spec_node at;
    rows[0] = (struct spec_row){.stage = p->node};
    *ret_matrix = false;
    if (p->node->kind != YAML_MAP ||
        (yaml_get(p->node, "extends") == NULL && yaml_get(p->node, "matrix") == NULL)) {
        return 1;
    }
    struct yaml_node *all = all_keys(r, stages, p);
    if (all == NULL) {
        return 1;
    }
    const struct spec_node whole = {p->up, p->key, all, p->pos};
    if (!spec_child(r, &whole, "matrix", false, &at)) {
        rows[0].stage = all;
        return 1;
    }
    leave_out(all, "matrix");
    bool none = at.node->kind == YAML_STRING && strcmp(at.node->text, "none") == 0;
    int n = none ? 0 : make_rows(r, &at, all, max, rows);
    *ret_matrix = n > 0;
    if (n == 0) {
        rows[0] = (struct spec_row){.stage = all};
    }
    return MAX(n, 1);
}

void spec_rows_check(struct spec_reader *r, const struct spec_node *p, const struct spec_row *row)
{
    for (int i = 0; i < row->vars_n; i++) {
        const char *key = strchr(row->vars[i].key, '.') + 1;
        bool used = r->row_vars_used[i];
        if (row->only[i] && !used) {
            const struct spec_node at = {p, key, row->stage, row->pos[i]};
            char hint[256];
            spec_guess_stage_key(key, hint, sizeof hint);
            spec_fault(r, &at, "unknown_key",
                       arena_printf(r->a, "%.150s, or use it as {matrix.%.64s}", hint, key),
                       "'%.64s' is no key of a stage, and the stage has no {matrix.%.64s}", key,
                       key);
        }
    }
}
