/* Reads `gate` of a stage: what a metric of its runs must be before the stages that need it start.
 * In a matrix `of` says which rows have it. */
#include "spec_read.h"
#include <math.h>
#include <stdlib.h>

/* jsonb writes a large number with all its digits, and no reader of JSON takes an integer beyond 64
 * bits: the stored campaign could not be read. */
#define BOUND_MAX 1e15

static const char *text_of(const struct yaml_node *n)
{
    bool scalar = n != NULL && n->kind != YAML_MAP && n->kind != YAML_LIST && n->kind != YAML_NULL;
    return scalar ? n->text : NULL;
}

/* What stage p has under `key`, or under the dotted name of one value of a map; NULL: nothing. */
static const char *value_of(struct spec_reader *r, const struct spec_node *p, const char *key)
{
    const char *dot = strchr(key, '.');
    if (dot != NULL) {
        const struct yaml_node *map =
            yaml_get(p->node, arena_strndup(r->a, key, (size_t)(dot - key)));
        return map != NULL && map->kind == YAML_MAP ? text_of(yaml_get(map, dot + 1)) : NULL;
    }
    const char *value = text_of(yaml_get(p->node, key));
    return value == NULL && strcmp(key, "instance_count") == 0 ? "1" : value;
}

/* True when the stage has every value that `of` names. */
static bool is_of(struct spec_reader *r, const struct spec_node *p, const struct spec_node *of)
{
    for (size_t i = 0; i < of->node->n; i++) {
        const char *has = value_of(r, p, of->node->keys[i]);
        const char *wanted = text_of(of->node->items[i]);
        if (has == NULL || wanted == NULL || strcmp(has, wanted) != 0) {
            return false;
        }
    }
    return true;
}

static bool read_bound(struct spec_reader *r, const struct spec_node *p, const char *key,
                       double *ret)
{
    struct spec_node at;
    if (!spec_child(r, p, key, false, &at)) {
        return false;
    }
    bool number = at.node->kind == YAML_INT || at.node->kind == YAML_FLOAT;
    *ret = number ? strtod(at.node->text, NULL) : NAN;
    const char *hint = key[0] == 'b' ? "below: 3.0" : "above: 0.75";
    if (!number || isnan(*ret)) {
        spec_fault(r, &at, "type", hint, "a number is needed here");
        return false;
    }
    if (fabs(*ret) > BOUND_MAX) {
        spec_fault(r, &at, "range", hint, "%.40s is not within -1e15 and 1e15", at.node->text);
        return false;
    }
    return true;
}

static void read_metric(struct spec_reader *r, const struct spec_node *p,
                        const struct spec_training *t, struct spec_gate *g)
{
    struct spec_node at;
    const char *names[SPEC_METRICS_MAX] = {NULL};
    size_t n = 0;
    if (!spec_child(r, p, "metric", true, &at) ||
        !spec_text(r, &at, BRACES_VARS, 255, &g->metric)) {
        return;
    }
    for (int i = 0; i < t->metrics_n; i++) {
        if (strcmp(t->metrics[i].name, "step") != 0) {
            names[n++] = t->metrics[i].name;
        }
        if (strcmp(t->metrics[i].name, g->metric) == 0 && strcmp(g->metric, "step") != 0) {
            return;
        }
    }
    char hint[256] = "metrics: [{name: loss, regex: 'loss=([0-9.]+)'}]";
    if (n > 0) {
        spec_guess(g->metric, names, n, hint, sizeof hint);
    }
    spec_fault(r, &at, "unknown_metric", hint, "the stage has no metric '%.64s' to judge",
               g->metric);
}

static void read_bounds(struct spec_reader *r, const struct spec_node *p, struct spec_gate *g)
{
    struct spec_node at;
    static const char *const otherwise[] = {"hold"};
    int which;
    g->has_below = read_bound(r, p, "below", &g->below);
    g->has_above = read_bound(r, p, "above", &g->above);
    if (yaml_get(p->node, "below") == NULL && yaml_get(p->node, "above") == NULL) {
        spec_fault(r, p, "required", "below: 3.0", "a gate without a bound");
    } else if (g->has_below && g->has_above && g->above >= g->below) {
        (void)spec_child(r, p, "above", false, &at);
        spec_fault(r, &at, "range", "less than below", "no value is above %g and below %g at once",
                   g->above, g->below);
    }
    if (spec_child(r, p, "else", false, &at)) {
        (void)spec_choice(r, &at, otherwise, ARRAY_LEN(otherwise), NULL, &which);
    }
}

void spec_gate_read(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at, of;
    struct spec_gate g = {.metric = NULL};
    if (!spec_child(r, p, "gate", false, &at) ||
        (at.node->kind == YAML_STRING && strcmp(at.node->text, "none") == 0)) {
        return;
    }
    if (!spec_is_map(r, &at, "{metric: loss, below: 3.0}, or none")) {
        return;
    }
    spec_check_map(r, &at, SPEC_MAP_GATE);
    read_metric(r, &at, s->training, &g);
    read_bounds(r, &at, &g);
    bool applies = true;
    if (spec_child(r, &at, "of", false, &of) && spec_is_map(r, &of, "{instance_count: 8}")) {
        applies = is_of(r, p, &of);
    }
    if (applies) {
        s->gate = g;
    }
}

void spec_gate_rows(struct spec_reader *r, const struct spec_node *p,
                    const struct spec_stage *const *rows, int n)
{
    struct spec_node gate, of;
    for (int i = 0; i < n; i++) {
        if (rows[i]->gate.metric != NULL) {
            return;
        }
    }
    if (p->node->kind == YAML_MAP && spec_child(r, p, "gate", false, &gate) &&
        gate.node->kind == YAML_MAP && spec_child(r, &gate, "of", false, &of) &&
        of.node->kind == YAML_MAP && yaml_get(gate.node, "metric") != NULL) {
        spec_fault(r, &of, "no_row",
                   n > 1 ? "values of one of its rows, as the matrix has them"
                         : "leave it out: the stage is one row",
                   "the gate is of no row of the stage");
    }
}
