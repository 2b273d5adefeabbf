/* Checks of a valid campaign file: attempts that exceed a budget, and warnings. */
#include "common/regex.h"
#include "core/catalog/catalog.h"
#include "core/catalog/image_ref.h"
#include "core/money/cost.h"
#include "spec.h"
#include "spec_parse.h"
#include <stdio.h>

/* "12.34" or "0.0748" USD, to the micro-USD: a budget of this amount is enough, and two amounts of
 * which one does not fit into the other look different. */
static void usd(musd_t musd, char *out, size_t n)
{
    int at =
        snprintf(out, n, "%lld.%06lld", (long long)(musd / 1000000), (long long)(musd % 1000000));
    while (out[at - 1] == '0' && out[at - 3] != '.') {
        out[--at] = '\0';
    }
}

struct budget_cap {
    const char *name;
    musd_t musd; /* -1 none */
};

/* The shortest time that the stage may be billed for at once. */
static int64_t least_s(const struct spec_stage *s)
{
    return s->endpoint != NULL ? s->endpoint->ttl_s : s->min_runtime_s;
}

/* The least that one attempt, or the whole ttl of what is kept, may cost. */
static bool least_cost(const struct spec_stage *s, musd_t price, musd_t *ret, struct err *err)
{
    if (s->filesystem != NULL) {
        return cost_storage_worst_case(price, s->filesystem->capacity_gib, s->filesystem->ttl_s,
                                       ret, err);
    }
    return cost_worst_case(price, s->instance_count, least_s(s), 0, ret, err);
}

static void fault_storage(const char *pointer, const struct spec_stage *s, const char *need,
                          const struct budget_cap *cap, struct faults *faults)
{
    char have[40];
    char hint[96];
    usd(cap->musd, have, sizeof have);
    (void)snprintf(hint, sizeof hint, "at least %s USD, or a shorter ttl", need);
    faults_add(faults, (struct position){0, 0}, pointer, "budget", hint,
               "a file system of %lld GiB may cost %s USD within its ttl, and %s is %s USD",
               (long long)s->filesystem->capacity_gib, need, cap->name, have);
}

static bool check_stage(const struct spec *spec, const struct spec_stage *s, musd_t price,
                        struct faults *faults)
{
    const struct budget_cap caps[] = {{"the stage's per_task", s->per_task_musd},
                                      {"the stage's budget", s->budget_musd},
                                      {"the campaign's budget", spec->budget_musd}};
    musd_t worst = 0;
    struct err err = ERR_INIT;
    char pointer[96];
    const char *limit = s->endpoint != NULL ? "ttl" : "max_runtime";
    (void)snprintf(pointer, sizeof pointer, "stages.%.64s", s->name);
    if (!least_cost(s, price, &worst, &err)) {
        faults_add(faults, (struct position){0, 0}, pointer, "budget", limit, "%s", err.message);
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(caps); i++) {
        if (caps[i].musd < 0 || worst <= caps[i].musd) {
            continue;
        }
        char need[40];
        char have[40];
        char hint[256];
        usd(worst, need, sizeof need);
        if (s->filesystem != NULL) {
            fault_storage(pointer, s, need, &caps[i], faults);
            return false;
        }
        usd(caps[i].musd, have, sizeof have);
        int64_t fits = cost_runtime_that_fits(price, s->instance_count, 0, caps[i].musd);
        if (fits > 0) {
            (void)snprintf(hint, sizeof hint, "at least %s USD, or a %s of at most %llds", need,
                           limit, (long long)fits);
        } else {
            (void)snprintf(hint, sizeof hint, "at least %s USD", need);
        }
        faults_add(faults, (struct position){0, 0}, pointer, "budget", hint,
                   "one %s on %d x %s may cost %s USD (%lld s, %d s to stop, %d s to upload), "
                   "and %s is %s USD",
                   s->endpoint != NULL ? "endpoint" : "attempt", s->instance_count,
                   s->instance_type[0], need, (long long)least_s(s), COST_STOP_GRACE_S,
                   COST_UPLOAD_S, caps[i].name, have);
        return false;
    }
    return true;
}

bool spec_check_budget(const struct spec *s, spec_price_fn *price_of, void *ctx,
                       struct faults *faults)
{
    bool good = true;
    for (int i = 0; i < s->stages_n; i++) {
        musd_t price;
        if (price_of(ctx, s->stages[i], &price)) {
            good = check_stage(s, s->stages[i], price, faults) && good;
        }
    }
    return good;
}

/* Known families only come this far: SageMaker does not have all sizes that EC2 has. */
static void warn_types(const struct spec_stage *st, const char *pointer, struct faults *ret)
{
    for (int i = 0; st->kind == SPEC_KIND_JOBS && i < st->instance_type_n; i++) {
        if (catalog_gpus(st->instance_type[i]) < 0) {
            const char *guess = catalog_type_guess(st->instance_type[i]);
            faults_add(ret, (struct position){0, 0}, pointer, "instance_type",
                       guess != NULL ? guess : "", "no training job on %.40s is known%s%s",
                       st->instance_type[i], guess != NULL ? "; there is " : "",
                       guess != NULL ? guess : "");
        }
    }
}

/* SageMaker takes the number from the first group. */
static void warn_metrics(const struct spec_stage *st, const char *pointer, struct faults *ret)
{
    for (int i = 0; st->training != NULL && i < st->training->metrics_n; i++) {
        struct err ignored = ERR_INIT;
        int groups;
        if (regex_check(st->training->metrics[i].regex, &groups, &ignored) && groups == 0) {
            faults_add(ret, (struct position){0, 0}, pointer, "metric_group", "loss=([0-9.]+)",
                       "the regex of metric '%.64s' has no group that is the number",
                       st->training->metrics[i].name);
        }
    }
}

/* A rule of one's own is a job of its own. */
static void warn_rules(const struct spec_stage *st, const char *pointer, struct faults *ret)
{
    if (st->training == NULL) {
        return;
    }
    const struct spec_hook *const hooks[] = {&st->training->debug, &st->training->profile};
    for (size_t h = 0; h < ARRAY_LEN(hooks); h++) {
        for (int i = 0; i < hooks[h]->rules_n; i++) {
            const struct spec_rule *rule = &hooks[h]->rules[i];
            if (rule->instance_type != NULL) {
                faults_add(ret, (struct position){0, 0}, pointer, "rule_cost",
                           "a built-in rule, which has no instance_type",
                           "rule '%.64s' runs on an %.40s of its own: no budget counts it",
                           rule->name, rule->instance_type);
            }
        }
    }
}

void spec_warn(const struct spec *s, struct faults *ret)
{
    for (int i = 0; i < s->stages_n; i++) {
        const struct spec_stage *st = s->stages[i];
        char pointer[96];
        (void)snprintf(pointer, sizeof pointer, "stages.%.64s", st->name);
        bool aws = st->filesystem != NULL || (st->training != NULL && st->training->framework) ||
                   (st->endpoint != NULL && st->endpoint->framework); /* AWS keeps these tags */
        struct image_ref ref;
        if (!aws && !image_ref_parse(st->image, &ref) && !spec_image_by_vpc(st)) {
            faults_add(ret, (struct position){0, 0}, pointer, "image_registry",
                       "ACCOUNT.dkr.ecr.REGION.amazonaws.com/name@sha256:...",
                       "image '%.120s' is not in ECR: SageMaker takes no others", st->image);
        } else if (!aws && !ref.pinned) {
            faults_add(ret, (struct position){0, 0}, pointer, "image_tag", "name@sha256:...",
                       "image '%.120s' is not pinned to a digest: it may change between parts",
                       st->image);
        }
        if (st->worker == WORKER_DOWNLOAD && st->subnets_n > 0) {
            faults_add(ret, (struct position){0, 0}, pointer, "nat_cost", "vpc: none",
                       "a download inside a VPC pays its NAT gateway for every byte");
        }
        warn_types(st, pointer, ret);
        warn_metrics(st, pointer, ret);
        warn_rules(st, pointer, ret);
        if (s->budget_musd < 0 && st->budget_musd < 0) {
            faults_add(ret, (struct position){0, 0}, pointer, "no_budget",
                       "budget: {total: 900 USD}", "no budget bounds what this stage may cost");
        }
    }
}
