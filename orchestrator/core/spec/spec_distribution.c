/* Reads `distribution` and `compiler`, in drover's form ({kind: mpi}) or as the dictionary of the
 * SageMaker Python SDK. */
#include "core/catalog/catalog.h"
#include "spec_read.h"

static const char sdk_hint[] =
    "{kind: smdistributed, mode: data_parallel}, or the dictionary of the SageMaker Python SDK";

struct distribution_reader {
    struct spec_reader *r;
    const struct spec_stage *stage;
    struct spec_training *t;
};

/* enabled: a boolean, or the text "true" or "false", which the SDK sends as text. */
static const char *read_enabled(struct spec_reader *r, const struct spec_node *p)
{
    struct spec_node at;
    bool on = true;
    if (!spec_child(r, p, "enabled", false, &at)) {
        return "true";
    }
    bool text = at.node->kind == YAML_STRING && at.node->quoted;
    if (text && (strcmp(at.node->text, "true") == 0 || strcmp(at.node->text, "True") == 0)) {
        return "\"true\"";
    }
    if (text && (strcmp(at.node->text, "false") == 0 || strcmp(at.node->text, "False") == 0)) {
        return "\"false\"";
    }
    (void)spec_bool(r, &at, &on);
    return on ? "true" : "false";
}

static bool is_on(const char *enabled)
{
    return enabled != NULL && strstr(enabled, "true") != NULL;
}

/* MPI options are taken verbatim: they hold braces as the SDK's do. */
static void read_options(struct spec_reader *r, const struct spec_node *p, const char *key,
                         const char **ret)
{
    struct spec_node at;
    if (!spec_child(r, p, key, false, &at)) {
        return;
    }
    if (at.node->kind != YAML_STRING || strlen(at.node->text) != at.node->text_n) {
        spec_fault(r, &at, "type", "'-verbose -x NAME=value'", "MPI options are one text");
    } else if (at.node->text_n > 2400) {
        spec_fault(r, &at, "limit", "", "longer than 2400 bytes");
    } else {
        *ret = arena_strndup(r->a, at.node->text, at.node->text_n);
    }
}

static void read_processes(struct distribution_reader *d, const struct spec_node *p)
{
    struct spec_node at;
    int64_t n;
    if (spec_child(d->r, p, "processes_per_host", false, &at) && spec_i64(d->r, &at, 1, 1024, &n)) {
        d->t->mpi_processes = (int)n;
    }
}

/* mpi: {enabled: true, processes_per_host: 8, custom_mpi_options: "-x NAME=value"} */
static void read_mpi(struct distribution_reader *d, const struct spec_node *p)
{
    if (spec_is_map(d->r, p, "{enabled: true, processes_per_host: 8}")) {
        spec_check_map(d->r, p, SPEC_MAP_MPI);
        d->t->distribution[DISTRIBUTION_MPI] = read_enabled(d->r, p);
        read_processes(d, p);
        read_options(d->r, p, "custom_mpi_options", &d->t->mpi_options);
    }
}

static void read_parameters(struct distribution_reader *d, const struct spec_node *p)
{
    struct spec_node at;
    bool quoted;
    const char *text;
    if (spec_child(d->r, p, "parameters", false, &at) &&
        spec_is_map(d->r, &at, "{microbatches: 12, partitions: 2, pipeline: interleaved}") &&
        spec_json_value(d->r, &at, 2400, &text, &quoted)) {
        d->t->mp_parameters = text;
    }
}

static void read_smdistributed(struct distribution_reader *d, const struct spec_node *p)
{
    struct spec_node at;
    if (!spec_is_map(d->r, p, "{dataparallel: {enabled: true}}")) {
        return;
    }
    spec_check_map(d->r, p, SPEC_MAP_SMDISTRIBUTED);
    if (p->node->n == 0) {
        spec_fault(d->r, p, "required", "{dataparallel: {enabled: true}}", "nothing is named");
    }
    if (spec_child(d->r, p, "dataparallel", false, &at) &&
        spec_is_map(d->r, &at, "{enabled: true}")) {
        spec_check_map(d->r, &at, SPEC_MAP_DATA_PARALLEL);
        d->t->distribution[DISTRIBUTION_DATA_PARALLEL] = read_enabled(d->r, &at);
        read_options(d->r, &at, "custom_mpi_options", &d->t->dp_options);
    }
    if (spec_child(d->r, p, "modelparallel", false, &at) &&
        spec_is_map(d->r, &at, "{enabled: true, parameters: {partitions: 2}}")) {
        spec_check_map(d->r, &at, SPEC_MAP_MODEL_PARALLEL);
        d->t->distribution[DISTRIBUTION_MODEL_PARALLEL] = read_enabled(d->r, &at);
        read_parameters(d, &at);
    }
}

/* Kinds that only have `enabled`, in the order of enum spec_distribution from PYTORCHDDP on. */
static const char *const plain_kinds[] = {"pytorchddp", "torch_distributed", "pytorchxla",
                                          "parameter_server"};

static void read_sdk(struct distribution_reader *d, const struct spec_node *p)
{
    struct spec_node at;
    spec_check_map(d->r, p, SPEC_MAP_SDK_DISTRIBUTION);
    if (p->node->n == 0) {
        spec_fault(d->r, p, "required", sdk_hint, "no kind of distribution is named");
    }
    if (spec_child(d->r, p, "smdistributed", false, &at)) {
        read_smdistributed(d, &at);
    }
    if (spec_child(d->r, p, "mpi", false, &at)) {
        read_mpi(d, &at);
    }
    for (size_t i = 0; i < ARRAY_LEN(plain_kinds); i++) {
        if (spec_child(d->r, p, plain_kinds[i], false, &at) &&
            spec_is_map(d->r, &at, "{enabled: true}")) {
            spec_check_map(d->r, &at, SPEC_MAP_ENABLED);
            d->t->distribution[DISTRIBUTION_PYTORCHDDP + (int)i] = read_enabled(d->r, &at);
        }
    }
}

/* {kind: smdistributed, mode: model_parallel, parameters: {...}, processes_per_host: 8} */
static void read_smdistributed_kind(struct distribution_reader *d, const struct spec_node *p)
{
    static const char *const modes[] = {"data_parallel", "model_parallel"};
    struct spec_node at;
    int mode = 0;
    if (!spec_child(d->r, p, "mode", true, &at) ||
        !spec_choice(d->r, &at, modes, ARRAY_LEN(modes), NULL, &mode)) {
        return;
    }
    if (mode == 0) {
        d->t->distribution[DISTRIBUTION_DATA_PARALLEL] = read_enabled(d->r, p);
        read_options(d->r, p, "mpi_options", &d->t->dp_options);
        return;
    }
    d->t->distribution[DISTRIBUTION_MODEL_PARALLEL] = read_enabled(d->r, p);
    d->t->distribution[DISTRIBUTION_MPI] = "true";
    read_parameters(d, p);
    read_processes(d, p);
    read_options(d->r, p, "mpi_options", &d->t->mpi_options);
}

static void read_kind(struct distribution_reader *d, const struct spec_node *p)
{
    static const char *const kinds[] = {"smdistributed",     "mpi",        "pytorchddp",
                                        "torch_distributed", "pytorchxla", "parameter_server"};
    static const char *const rewrites[] = {"smddp_rewrite"};
    struct spec_node at;
    int kind;
    int mode;
    spec_check_map(d->r, p, SPEC_MAP_DISTRIBUTION);
    if (!spec_child(d->r, p, "kind", true, &at) ||
        !spec_choice(d->r, &at, kinds, ARRAY_LEN(kinds), NULL, &kind)) {
        return;
    }
    if (kind == 0) {
        read_smdistributed_kind(d, p);
        return;
    }
    d->t->distribution[kind + 1] = read_enabled(d->r, p);
    if (kind == 1) {
        read_processes(d, p);
        read_options(d->r, p, "mpi_options", &d->t->mpi_options);
    }
    if (spec_child(d->r, p, "mode", false, &at)) {
        if (kind != 2) {
            spec_fault(d->r, &at, "conflict", "leave it out", "'%s' has no modes", kinds[kind]);
        } else if (spec_choice(d->r, &at, rewrites, 1, NULL, &mode)) {
            d->t->ddp_rewrite = true;
        }
    }
}

/* smdistributed on one of the types. Of what the catalog does not know nothing is said. */
static void check_gpus(struct distribution_reader *d, const struct spec_node *p, const char *type)
{
    bool mp = is_on(d->t->distribution[DISTRIBUTION_MODEL_PARALLEL]);
    int gpus = catalog_gpus(type);
    if (gpus == 0) {
        spec_fault(d->r, p, "conflict", "an instance type with GPUs, like ml.p4d.24xlarge",
                   "smdistributed needs GPUs, and %.40s has none", type);
    } else if (mp && gpus > 0 && d->t->mpi_processes > gpus) {
        spec_fault(d->r, p, "range", "processes_per_host: at most the GPUs of an instance",
                   "%d processes a host, and %.40s has %d GPUs", d->t->mpi_processes, type, gpus);
    }
}

/* What cannot be together, or not on these instances. */
static void check_distribution(struct distribution_reader *d, const struct spec_node *p)
{
    const char *const *on = d->t->distribution;
    bool dp = is_on(on[DISTRIBUTION_DATA_PARALLEL]);
    bool mp = is_on(on[DISTRIBUTION_MODEL_PARALLEL]);
    if (dp && mp) {
        spec_fault(d->r, p, "conflict", "one of data_parallel and model_parallel",
                   "smdistributed does either, not both at once");
        return;
    }
    if (mp && !is_on(on[DISTRIBUTION_MPI]) && !is_on(on[DISTRIBUTION_TORCH])) {
        spec_fault(d->r, p, "required", "mpi: {enabled: true, processes_per_host: 8}",
                   "model parallel runs under mpi or torch_distributed");
        return;
    }
    int before = d->r->faults->n;
    for (int i = 0; (dp || mp) && i < d->stage->instance_type_n && d->r->faults->n == before; i++) {
        check_gpus(d, p, d->stage->instance_type[i]);
    }
}

static bool compiler_family(const char *type)
{
    static const char *const families[] = {"ml.p3.", "ml.p3dn.", "ml.g4dn.", "ml.p4d.", "ml.g5."};
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        if (strncmp(type, families[i], strlen(families[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* The first of the stage's types that the Training Compiler does not work on; NULL: none. */
static const char *without_compiler(const struct spec_stage *s)
{
    for (int i = 0; i < s->instance_type_n; i++) {
        if (!compiler_family(s->instance_type[i])) {
            return s->instance_type[i];
        }
    }
    return NULL;
}

/* off, on, or {debug: on} */
static void read_compiler(struct distribution_reader *d, const struct spec_node *p,
                          const struct spec_node *stage)
{
    struct spec_node at;
    struct spec_training *t = d->t;
    t->compiler = true;
    if (p->node->kind == YAML_MAP) {
        spec_check_map(d->r, p, SPEC_MAP_COMPILER);
        if (spec_child(d->r, p, "enabled", false, &at)) {
            (void)spec_bool(d->r, &at, &t->compiler);
        }
        if (spec_child(d->r, p, "debug", false, &at)) {
            (void)spec_bool(d->r, &at, &t->compiler_debug);
        }
    } else if (!spec_bool(d->r, p, &t->compiler)) {
        return;
    }
    if (!t->compiler) {
        return;
    }
    if (yaml_get(stage->node, "framework") == NULL) {
        spec_fault(d->r, p, "required", "framework: huggingface 4.21 pytorch 1.11",
                   "the Training Compiler comes with AWS's images");
    } else if (is_on(t->distribution[DISTRIBUTION_DATA_PARALLEL]) ||
               is_on(t->distribution[DISTRIBUTION_MODEL_PARALLEL])) {
        spec_fault(d->r, p, "conflict", "distribution: {kind: pytorchxla}",
                   "the Training Compiler does not work with smdistributed");
    } else if (without_compiler(d->stage) != NULL) {
        spec_fault(d->r, p, "conflict", "a type of ml.p3, ml.p3dn, ml.g4dn, ml.p4d or ml.g5",
                   "the Training Compiler does not work on %.40s", without_compiler(d->stage));
    } else if (d->stage->instance_count > 1 && !is_on(t->distribution[DISTRIBUTION_XLA])) {
        spec_fault(d->r, p, "required", "distribution: {kind: pytorchxla}",
                   "on several instances the Training Compiler needs pytorchxla");
    }
}

/* Of a script drover sets all hyperparameters with such names, and spec_json_pairs says so. */
static void check_pairs(struct distribution_reader *d, const struct spec_node *stage)
{
    static const char *const own[] = {"sagemaker_distributed_dataparallel_enabled",
                                      "sagemaker_distributed_dataparallel_custom_mpi_options",
                                      "sagemaker_mpi_enabled",
                                      "sagemaker_mpi_num_of_processes_per_host",
                                      "sagemaker_mpi_custom_mpi_options",
                                      "sagemaker_pytorch_ddp_enabled",
                                      "sagemaker_torch_distributed_enabled",
                                      "sagemaker_pytorch_xla_multi_worker_enabled",
                                      "sagemaker_parameter_server_enabled",
                                      "mp_parameters"};
    struct spec_node map, at;
    if (d->t->script || !spec_child(d->r, stage, "hyperparameters", false, &map)) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        if (spec_child(d->r, &map, own[i], false, &at)) {
            spec_fault(d->r, &at, "conflict", "leave it out, and say it in distribution",
                       "'%.64s' is set by distribution", own[i]);
        }
    }
}

void spec_distribution_read(struct spec_reader *r, const struct spec_node *p,
                            const struct spec_stage *s, struct spec_training *t)
{
    struct distribution_reader d = {r, s, t};
    struct spec_node at;
    if (spec_child(r, p, "distribution", false, &at) && spec_is_map(r, &at, sdk_hint)) {
        int before = r->faults->n;
        if (yaml_get(at.node, "kind") != NULL) {
            read_kind(&d, &at);
        } else {
            read_sdk(&d, &at);
        }
        if (r->faults->n == before) {
            check_distribution(&d, &at);
        }
        check_pairs(&d, p);
    }
    if (spec_child(r, p, "compiler", false, &at)) {
        read_compiler(&d, &at, p);
    }
}
