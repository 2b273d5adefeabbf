/* Injected failures: see faults.h. */
#include "faults.h"
#include "local/settings.h"
#include <stdio.h>

static const struct {
    const char *name;
    enum fault_stage stage;
} kinds[FAULT_KIND_COUNT] = {
#define X(KIND, name, stage) [FAULT_##KIND] = {name, stage},
#include "faults.def"
#undef X
};

const char *fault_kind_name(enum injected_fault_kind k)
{
    return kinds[k].name;
}

int64_t fault_delay_us(const struct injected_fault *f, int64_t dflt_us)
{
    return f->delay_us >= 0 ? f->delay_us : dflt_us;
}

void faults_init(struct injected_faults *f)
{
    *f = (struct injected_faults){0};
}

static void retire_all(struct injected_faults *f)
{
    f->retired = xrealloc(f->retired, (f->retired_n + f->n + 1) * sizeof(struct injected_fault *));
    for (size_t i = 0; i < f->n; i++) {
        f->retired[f->retired_n++] = f->items[i];
    }
    f->n = 0;
}

void faults_done(struct injected_faults *f)
{
    retire_all(f);
    for (size_t i = 0; i < f->retired_n; i++) {
        free(f->retired[i]);
    }
    free(f->retired);
    *f = (struct injected_faults){0};
}

static bool kind_parse(const char *name, enum injected_fault_kind *ret, struct err *err)
{
    for (size_t k = 0; k < FAULT_KIND_COUNT; k++) {
        if (strcmp(kinds[k].name, name) == 0) {
            *ret = (enum injected_fault_kind)k;
            return true;
        }
    }
    return err_set(err, ERR_INVALID, "unknown fault kind '%s'", name);
}

static bool text_copy(char *out, size_t out_n, const char *text, const char *key, struct err *err)
{
    if (strlen(text) >= out_n) {
        return err_set(err, ERR_LIMIT, "'%s' is longer than %zu bytes", key, out_n - 1);
    }
    memcpy(out, text, strlen(text) + 1);
    return true;
}

static bool chance_parse(const json_t *o, struct injected_fault *f, struct err *err)
{
    const json_t *p = json_object_get(o, "probability");
    int64_t seed;
    if (!json_get_i64(o, "seed", 0, INT64_MAX, 1, &seed, err) ||
        !json_get_i64(o, "times", 0, INT64_MAX, p == NULL ? 1 : -1, &f->times, err) ||
        !json_get_i64(o, "after", 0, INT64_MAX, 0, &f->after, err)) {
        return false;
    }
    f->probability = p == NULL ? 1.0 : json_number_value(p);
    if (p != NULL && (!json_is_number(p) || !(f->probability >= 0.0 && f->probability <= 1.0))) {
        return err_set(err, ERR_INVALID, "'probability' must be a number from 0 to 1");
    }
    rng_seed(&f->rng, (uint64_t)seed);
    return true;
}

/* An optional text of at most out_n - 1 bytes. */
static bool text_get(const json_t *o, const char *key, char *out, size_t out_n, struct err *err)
{
    const char *text;
    return json_get_str(o, key, "", &text, err) && text_copy(out, out_n, text, key, err);
}

static bool fault_parse(const json_t *o, struct injected_fault *f, struct err *err)
{
    static const char *const keys[] = {"operation",     "name_contains", "kind",   "times",
                                       "after",         "probability",   "seed",   "delay_seconds",
                                       "reason",        "same_name",     "repeat", "limit",
                                       "instance_type", "subnet",        NULL};
    const char *kind;
    if (!json_is_object(o)) {
        return err_set(err, ERR_INVALID, "a fault must be an object");
    }
    return json_only_keys(o, keys, err) && json_get_required_str(o, "kind", &kind, err) &&
           kind_parse(kind, &f->kind, err) &&
           text_get(o, "operation", f->operation, sizeof f->operation, err) &&
           text_get(o, "name_contains", f->name_contains, sizeof f->name_contains, err) &&
           text_get(o, "instance_type", f->instance_type, sizeof f->instance_type, err) &&
           text_get(o, "subnet", f->subnet, sizeof f->subnet, err) &&
           text_get(o, "reason", f->reason, sizeof f->reason, err) &&
           json_get_bool(o, "same_name", false, &f->same_name, err) &&
           json_get_i64(o, "repeat", 1, FAULT_REPEAT_MAX, 1, &f->repeat, err) &&
           json_get_i64(o, "limit", 0, INT32_MAX, 0, &f->limit, err) && chance_parse(o, f, err) &&
           settings_seconds(o, "delay_seconds", -1, &f->delay_us, err);
}

bool faults_set(struct injected_faults *f, const json_t *list, bool append, struct err *err)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n + (append ? f->n : 0) > FAULTS_LIST_MAX) {
        return err_set(err, ERR_INVALID, "'faults' must be a list of at most %d", FAULTS_LIST_MAX);
    }
    struct injected_fault **fresh = xcalloc(n + 1, sizeof *fresh);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        fresh[i] = xcalloc(1, sizeof **fresh);
        ok = fault_parse(json_array_get(list, i), fresh[i], err) ||
             err_wrap(err, "fault %zu", i + 1);
    }
    if (ok && !append) {
        retire_all(f);
    }
    for (size_t i = 0; i < n; i++) {
        if (ok) {
            f->items[f->n++] = fresh[i];
        } else {
            free(fresh[i]);
        }
    }
    free(fresh);
    return ok;
}

json_t *faults_to_json(const struct injected_faults *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < f->n; i++) {
        const struct injected_fault *x = f->items[i];
        json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:I, s:s, s:b}", "kind",
                              kinds[x->kind].name, "operation", x->operation, "name_contains",
                              x->name_contains, "instance_type", x->instance_type, "subnet",
                              x->subnet, "after", (json_int_t)x->after, "hits", (json_int_t)x->hits,
                              "probability", x->probability, "times", (json_int_t)x->times,
                              "reason", x->reason, "same_name", x->same_name ? 1 : 0);
        if (x->times < 0) {
            (void)json_object_set_new(o, "times", json_null());
        }
        if (x->delay_us >= 0) {
            (void)json_object_set_new(o, "delay_seconds",
                                      json_real((double)x->delay_us / (double)USEC_PER_SEC));
        }
        (void)json_array_append_new(list, o);
    }
    return json_pack("{s:o}", "faults", list);
}

/* Are some of the instances that the request wants of this type? */
static bool wants_type(const json_t *input, const char *type)
{
    const json_t *of = json_object_get(input, "ResourceConfig");
    const json_t *groups = json_object_get(of, "InstanceGroups");
    const char *one = json_string_value(json_object_get(of, "InstanceType"));
    bool some = one != NULL && strcmp(one, type) == 0;
    for (size_t i = 0; i < json_array_size(groups) && !some; i++) {
        one = json_string_value(json_object_get(json_array_get(groups, i), "InstanceType"));
        some = one != NULL && strcmp(one, type) == 0;
    }
    return some;
}

/* May it be nowhere but in this subnet? */
static bool wants_subnet(const json_t *input, const char *subnet)
{
    const json_t *ids = json_object_get(json_object_get(input, "VpcConfig"), "Subnets");
    ids = ids != NULL ? ids : json_object_get(input, "SubnetIds");
    bool only = json_array_size(ids) > 0;
    for (size_t i = 0; i < json_array_size(ids) && only; i++) {
        const char *id = json_string_value(json_array_get(ids, i));
        only = id != NULL && strcmp(id, subnet) == 0;
    }
    return only;
}

/* list_omits names the job to leave out, not the request it applies to. */
static bool fault_meets(const struct injected_fault *f, const struct request *r)
{
    return (f->operation[0] == '\0' || strcmp(f->operation, r->operation) == 0) &&
           (f->kind == FAULT_LIST_OMITS || f->name_contains[0] == '\0' ||
            strstr(r->name, f->name_contains) != NULL) &&
           (f->instance_type[0] == '\0' || wants_type(r->input, f->instance_type)) &&
           (f->subnet[0] == '\0' || wants_subnet(r->input, f->subnet));
}

/* One that meets: is it its turn? */
static bool fault_acts(struct injected_fault *x)
{
    if (x->after > 0) {
        x->after--;
        return false;
    }
    return x->probability >= 1.0 || rng_chance(&x->rng, x->probability);
}

void faults_arm(struct injected_faults *f, struct request *r)
{
    for (size_t i = 0; i < f->n; i++) {
        struct injected_fault *x = f->items[i];
        enum fault_stage stage = kinds[x->kind].stage;
        if (stage != STAGE_EVENT && x->times != 0 && r->armed[stage] == NULL && fault_meets(x, r) &&
            fault_acts(x)) {
            r->armed[stage] = x;
        }
    }
}

static const struct injected_fault *fault_use(struct injected_fault *x)
{
    x->times -= x->times > 0;
    x->hits++;
    return x;
}

const struct injected_fault *faults_take_event(struct injected_faults *f, const char *job)
{
    for (size_t i = 0; i < f->n; i++) {
        struct injected_fault *x = f->items[i];
        if (kinds[x->kind].stage == STAGE_EVENT && x->times != 0 &&
            strstr(job, x->name_contains) != NULL && fault_acts(x)) {
            return fault_use(x);
        }
    }
    return NULL;
}

const struct injected_fault *faults_take(struct request *r, enum fault_stage stage)
{
    struct injected_fault *x = r->armed[stage];
    r->armed[stage] = NULL;
    if (x == NULL || x->times == 0) {
        return NULL;
    }
    return fault_use(x);
}
