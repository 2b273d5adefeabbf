/* Reads the keys that only training stages have, and checks them against each other and against
 * the instance types: framework, script, metrics, checkpoint, encryption and the switches of
 * CreateTrainingJob. */
#include "common/regex.h"
#include "core/catalog/catalog.h"
#include "source_uri.h"
#include "spec_read.h"
#include "worker_protocol.h"
#include <ctype.h>
#include <stdio.h>

bool spec_has_script(const struct spec_node *p)
{
    return yaml_get(p->node, "framework") != NULL || yaml_get(p->node, "entry_point") != NULL ||
           yaml_get(p->node, "source_dir") != NULL;
}

/* One word of `framework`: a name, a version or a python. */
static bool read_framework_word(struct image_wish *w, const char *word)
{
    if (strncmp(word, "py", 2) == 0 && word[2] >= '0' && word[2] <= '9') {
        w->python = word;
    } else if (strcmp(word, "pytorch") == 0 || strcmp(word, "huggingface") == 0) {
        if (w->framework != NULL &&
            (strcmp(w->framework, word) == 0 || strcmp(word, "pytorch") != 0)) {
            return false;
        }
        w->framework = w->framework == NULL ? word : w->framework;
    } else if (word[0] >= '0' && word[0] <= '9' && w->framework != NULL) {
        const char **to = w->version == NULL ? &w->version : &w->pytorch;
        if (*to != NULL) {
            return false;
        }
        *to = word;
    } else {
        return false;
    }
    return true;
}

/* "pytorch 1.12", "pytorch 1.8 py36", "huggingface 4.21 pytorch 1.11 py38" */
bool spec_framework_words(struct spec_reader *r, const struct spec_node *p, struct image_wish *w)
{
    static const char hint[] = "pytorch 1.12, pytorch 1.8 py36, huggingface 4.21 pytorch 1.11";
    const char *text;
    if (!spec_text(r, p, BRACES_VARS, 128, &text)) {
        return false;
    }
    struct str rest = str_of(text);
    for (struct str one = str_split(&rest, ' '); one.n > 0; one = str_split(&rest, ' ')) {
        if (!read_framework_word(w, arena_strndup(r->a, one.p, one.n))) {
            spec_fault(r, p, "value", hint, "'%.80s': '" STR_FMT "' is not known here", text,
                       STR_ARG(one));
            return false;
        }
    }
    if (w->framework == NULL || w->version == NULL) {
        spec_fault(r, p, "required", hint, "'%.80s' has no %s", text,
                   w->framework == NULL ? "framework" : "version");
        return false;
    }
    return true;
}

bool spec_framework_image(struct spec_reader *r, const struct spec_node *p,
                          const struct image_wish *w, const char **ret)
{
    AUTO_BUF struct buf uri = BUF_INIT(512);
    AUTO_BUF struct buf versions = BUF_INIT(200);
    struct err why = ERR_INIT;
    if (r->defaults->region == NULL || r->defaults->region[0] == '\0') {
        spec_fault(r, p, "required", "AWS_REGION=us-east-1, or image: URI",
                   "AWS's image of a framework depends on the region, and none is set");
        return false;
    }
    if (!catalog_image_uri(w, r->defaults->region, &uri, &why)) {
        catalog_versions(w->framework, w->inference, &versions);
        spec_fault(r, p, "value",
                   arena_printf(r->a, "%s, or image: URI of your own", buf_cstr(&versions)), "%s",
                   why.message);
        return false;
    }
    *ret = arena_strndup(r->a, buf_cstr(&uri), uri.n);
    return true;
}

bool spec_framework_gpu(struct spec_reader *r, const struct spec_node *p, const char *type,
                        bool *ret)
{
    int gpus = catalog_family_gpus(type);
    *ret = gpus > 0;
    if (!catalog_runs_frameworks(type)) {
        spec_fault(r, p, "conflict", "image: URI of one that is built for it",
                   "AWS's images of frameworks do not run on %.40s", type);
        return false;
    }
    for (int i = 0; i < r->named_types_n && gpus < 0; i++) { /* others are a fault themselves */
        if (strcmp(r->named_types[i], type) == 0) {
            spec_fault(r, p, "conflict", "image: URI in place of framework",
                       "%.40s is newer than this drover: whether its image is one with GPUs is "
                       "not known",
                       type);
        }
    }
    return gpus >= 0;
}

/* 1.3 is where the SDK begins to ask for a time series; huggingface always does. */
static bool has_series(const struct image_wish *w)
{
    return strcmp(w->framework, "huggingface") == 0 || strncmp(w->version, "1.1.", 4) != 0;
}

/* AWS's image for the stage's types: all of them have GPUs, or none. */
static void read_framework(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s,
                           struct spec_training *t)
{
    struct image_wish w = {.compiler = t->compiler,
                           .smdistributed = t->distribution[DISTRIBUTION_DATA_PARALLEL] != NULL ||
                                            t->distribution[DISTRIBUTION_MODEL_PARALLEL] != NULL};
    struct spec_node at;
    if (!spec_child(r, p, "framework", false, &at)) {
        return;
    }
    if (yaml_get(p->node, "image") != NULL) {
        spec_fault(r, &at, "conflict", "either framework or image", "a stage has one image");
        return;
    }
    if (s->worker != WORKER_NONE) {
        spec_fault(r, &at, "conflict", "leave one of them out",
                   "worker download has an image of its own");
        return;
    }
    if (!spec_framework_words(r, &at, &w) || s->instance_type_n == 0) {
        return;
    }
    t->metrics_series = has_series(&w);
    for (int i = 0; i < s->instance_type_n; i++) {
        bool gpu;
        if (!spec_framework_gpu(r, &at, s->instance_type[i], &gpu)) {
            return;
        }
        w.gpu = i == 0 ? gpu : w.gpu;
        if (gpu != w.gpu) {
            spec_fault(r, &at, "conflict", "types with GPUs only, or without only",
                       "one image cannot serve both %.40s and %.40s", s->instance_type[0],
                       s->instance_type[i]);
            return;
        }
    }
    if (spec_framework_image(r, &at, &w, &s->image)) {
        t->framework = true;
    }
}

/* arn:PARTITION:lambda:REGION:ACCOUNT:function:NAME */
static bool is_function(const char *arn)
{
    struct str rest = str_of(arn);
    struct str part[6];
    for (size_t i = 0; i < ARRAY_LEN(part); i++) {
        part[i] = str_split(&rest, ':');
    }
    for (size_t i = 1; i < 4; i += 2) { /* partition, region */
        for (size_t k = 0; k < part[i].n; k++) {
            if (!isalnum((unsigned char)part[i].p[k]) && part[i].p[k] != '-') {
                return false;
            }
        }
    }
    return str_eq_cstr(part[0], "arn") && part[1].n > 0 && str_eq_cstr(part[2], "lambda") &&
           part[3].n > 0 && part[4].n == 12 && strspn(part[4].p, "0123456789") == 12 &&
           str_eq_cstr(part[5], "function") && rest.n > 0;
}

/* image_config: {access: Vpc, credentials: arn:aws:lambda:...} */
static void read_image_config(struct spec_reader *r, const struct spec_node *p,
                              const struct spec_stage *s, struct spec_training *t)
{
    static const char *const modes[] = {"Platform", "Vpc"};
    struct spec_node config, at;
    int i = 0;
    if (!spec_child(r, p, "image_config", false, &config) ||
        !spec_is_map(r, &config, "{access: Vpc}")) {
        return;
    }
    spec_check_map(r, &config, SPEC_MAP_IMAGE_CONFIG);
    if (!spec_child(r, &config, "access", true, &at) ||
        !spec_choice(r, &at, modes, ARRAY_LEN(modes), NULL, &i)) {
        return;
    }
    t->image_access = modes[i];
    if (i > 0 && t->framework) {
        spec_fault(r, &at, "conflict", "Platform, or image: URI of your own",
                   "AWS's image of a framework is in ECR");
    } else if (i > 0 && s->subnets_n == 0) {
        spec_fault(r, &at, "required", "vpc: {subnets: [...], security_groups: [...]}",
                   "the registry is reached by the VPC, and the stage has none");
    }
    if (!spec_child(r, &config, "credentials", false, &at) ||
        !spec_text(r, &at, BRACES_VARS, 2048, &t->image_credentials)) {
        return;
    }
    spec_one_line(r, &at, t->image_credentials);
    if (!is_function(t->image_credentials)) {
        spec_fault(r, &at, "pattern", "arn:aws:lambda:us-east-1:111122223333:function:NAME",
                   "'%.120s' is not the ARN of a Lambda function", t->image_credentials);
    } else if (i == 0) {
        spec_fault(r, &at, "conflict", "access: Vpc, or leave it out",
                   "only a registry in the VPC asks for credentials: ECR knows the role");
    }
}

/* A file of the source: no folder above it. */
bool spec_script_ok(const char *s)
{
    size_t n = strlen(s);
    bool suffix = n > 3 && (strcmp(s + n - 3, ".py") == 0 || strcmp(s + n - 3, ".sh") == 0);
    return suffix && s[0] != '/' && strstr(s, "..") == NULL;
}

/* sha256:DIGEST: an archive that was sent to droverd before the file. */
static void read_sent_source(struct spec_reader *r, const struct spec_node *at, struct str digest,
                             struct spec_training *t)
{
    struct err why = ERR_INIT;
    char *uri = arena_alloc(r->a, SOURCE_URI_MAX);
    if (r->defaults->bucket == NULL) {
        spec_fault(r, at, "required", "DROVER_BUCKET=s3://bucket in droverd's environment",
                   "there is no bucket for the source");
    } else if (!source_uri(r->defaults->bucket, digest, uri, &why)) {
        spec_fault(r, at, "limit", "a shorter DROVER_BUCKET", "%s", why.message);
    } else if (spec_s3(r, at, uri)) {
        t->source_dir = uri;
        t->source_sha256 = arena_strndup(r->a, digest.p, digest.n);
    }
}

static void read_source(struct spec_reader *r, const struct spec_node *at, struct spec_training *t)
{
    static const char hint[] =
        "s3://bucket/code/sourcedir.tar.gz, made by: tar -C FOLDER -czf sourcedir.tar.gz .";
    struct str digest;
    const char *text;
    if (!spec_text(r, at, BRACES_VARS, 1024, &text)) {
        return;
    }
    t->source_dir = text;
    if (source_digest(text, &digest)) {
        read_sent_source(r, at, digest, t);
    } else if (strncmp(text, "s3://", 5) != 0) {
        spec_fault(r, at, "unsupported",
                   "./train and drover submit, or s3://bucket/code/sourcedir.tar.gz",
                   "'%.120s' was not packed: drover submit packs a folder that is named without "
                   "variables",
                   text);
    } else if (spec_s3(r, at, text) && !str_ends(str_of(text), ".tar.gz")) {
        spec_fault(r, at, "pattern", hint, "'%.120s' is no .tar.gz", text);
    }
}

static void read_script(struct spec_reader *r, const struct spec_node *p,
                        const struct spec_stage *s, struct spec_training *t)
{
    struct spec_node at;
    int64_t n;
    t->log_level = SPEC_LOG_LEVEL;
    if (!t->script) {
        if (spec_child(r, p, "log_level", false, &at)) {
            spec_fault(r, &at, "conflict", "leave it out", "only a script has a log level");
        }
        return;
    }
    if (s->worker != WORKER_NONE) {
        return; /* said at its framework */
    }
    if (spec_child(r, p, "log_level", false, &at) && spec_i64(r, &at, 0, 50, &n)) {
        t->log_level = (int)n;
    }
    if (spec_child(r, p, "entry_point", true, &at) &&
        spec_text(r, &at, BRACES_VARS, 256, &t->entry_point) && !spec_script_ok(t->entry_point)) {
        spec_fault(r, &at, "pattern", "train.py: a file of source_dir",
                   "'%.120s' is no script of the source", t->entry_point);
    }
    if (spec_child(r, p, "source_dir", true, &at)) {
        read_source(r, &at, t);
    }
    if (spec_child(r, p, "command", false, &at)) {
        spec_fault(r, &at, "conflict", "entry_point",
                   "AWS's toolkit starts the script: a command would take its place");
    }
}

static void read_metric(struct spec_reader *r, const struct spec_node *p, struct spec_training *t)
{
    struct spec_metric *m = &t->metrics[t->metrics_n];
    struct spec_node at;
    struct err why = ERR_INIT;
    int groups;
    *m = (struct spec_metric){"", ""};
    if (!spec_is_map(r, p, "{name: loss, regex: 'loss=([0-9.]+)'}")) {
        return;
    }
    spec_check_map(r, p, SPEC_MAP_METRIC);
    t->metrics_n++;
    if (spec_child(r, p, "name", true, &at) && spec_text(r, &at, BRACES_VARS, 255, &m->name)) {
        spec_one_line(r, &at, m->name);
        for (int i = 0; i + 1 < t->metrics_n; i++) {
            if (strcmp(t->metrics[i].name, m->name) == 0) {
                spec_fault(r, &at, "duplicate", "a name of its own",
                           "two metrics are named '%.64s'", m->name);
            }
        }
    }
    if (!spec_child(r, p, "regex", true, &at)) {
        return;
    }
    if (at.node->kind != YAML_STRING || at.node->text_n == 0 || at.node->text_n > 500 ||
        strlen(at.node->text) != at.node->text_n) {
        spec_fault(r, &at, "limit", "'loss=([0-9.]+)'", "a regex is a text of 1 to 500 bytes");
    } else if (!regex_check(at.node->text, &groups, &why)) {
        spec_fault(r, &at, "pattern", "the first group is the number: 'loss=([0-9.]+)'",
                   "no regular expression: %s", why.message);
    } else { /* braces are quantifiers here, no variables */
        m->regex = arena_strndup(r->a, at.node->text, at.node->text_n);
        spec_one_line(r, &at, m->regex);
    }
}

static void read_metrics(struct spec_reader *r, const struct spec_node *p, struct spec_training *t)
{
    struct spec_node at;
    if (spec_child(r, p, "metrics", false, &at) &&
        spec_is_list(r, &at, SPEC_METRICS_MAX, "[{name: loss, regex: 'loss=([0-9.]+)'}]")) {
        for (size_t i = 0; i < at.node->n; i++) {
            char key[24];
            const struct spec_node one = spec_item(&at, i, key);
            read_metric(r, &one, t);
        }
    }
}

static void check_place(struct spec_reader *r, const struct spec_node *p,
                        const struct spec_stage *s, const char *place)
{
    if (!spec_s3(r, p, place)) {
        return;
    }
    if (spec_part_place(r, p, s, place, "use the same checkpoints") &&
        (strstr(place, "{attempt}") != NULL || strstr(place, "{attempt:") != NULL)) {
        spec_fault(r, p, "conflict", "leave {attempt} out",
                   "a retry must find the checkpoints of the attempt before it");
    }
}

/* checkpoint: "s3://bucket/ckpt/", or {to: "s3://...", path: /opt/ml/checkpoints} */
static void read_checkpoint(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s,
                            struct spec_training *t)
{
    struct spec_node at;
    struct spec_node to;
    if (!spec_child(r, p, "checkpoint", false, &at)) {
        return;
    }
    if (s->worker != WORKER_NONE) {
        spec_fault(r, &at, "conflict", "leave it out", "worker download resumes from its output");
        return;
    }
    s->resumable = true;
    to = at;
    if (at.node->kind == YAML_MAP) {
        spec_check_map(r, &at, SPEC_MAP_CHECKPOINT);
        struct spec_node path;
        if (spec_child(r, &at, "path", false, &path) &&
            spec_text(r, &path, BRACES_VARS, SPEC_STRING_MAX, &t->checkpoint_path) &&
            t->checkpoint_path[0] != '/') {
            spec_fault(r, &path, "pattern", "/opt/ml/checkpoints",
                       "a path in the container is "
                       "absolute");
        }
        if (!spec_child(r, &at, "to", true, &to)) {
            return;
        }
    }
    if (spec_text(r, &to, BRACES_TEMPLATE, 1024, &t->checkpoint)) {
        check_place(r, &to, s, t->checkpoint);
    }
}

/* retry_strategy: SageMaker starts the job again after an internal error, and drover does not. */
static void read_retry_strategy(struct spec_reader *r, const struct spec_node *p,
                                struct spec_stage *s, struct spec_training *t)
{
    struct spec_node at;
    int64_t n;
    if (spec_child(r, p, "retry_strategy", false, &at) &&
        spec_i64(r, &at, 1, SPEC_RETRY_STRATEGY_MAX, &n)) {
        t->retry_strategy = (int)n;
        s->retry[CAUSE_INTERNAL] = (struct spec_retry){.set = true, .counts = true};
    }
}

static void read_max_pending(struct spec_reader *r, const struct spec_node *p,
                             struct spec_training *t)
{
    struct spec_node at;
    if (spec_child(r, p, "max_pending", false, &at)) {
        (void)spec_duration(r, &at, SPEC_PENDING_S_MIN, SPEC_PENDING_S_MAX, &t->max_pending_s);
    }
}

void spec_volume_key(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    s->volume_kms_key = r->volume_kms_key;
    if (spec_child(r, p, "volume_kms_key", false, &at) &&
        spec_kms_key(r, &at, &s->volume_kms_key)) {
        for (int i = 0; i < s->instance_type_n; i++) {
            if (catalog_has_disks(s->instance_type[i])) {
                spec_fault(r, &at, "conflict", "leave it out: the disks are encrypted by hardware",
                           "%.40s has local disks and no volume: SageMaker refuses a key",
                           s->instance_type[i]);
                return;
            }
        }
    } else if (s->volume_kms_key != NULL) {
        for (int i = 0; i < s->instance_type_n; i++) {
            if (catalog_has_disks(s->instance_type[i])) {
                s->volume_kms_key = NULL; /* the campaign's key is for stages with volumes */
            }
        }
    }
}

/* droverd's key is for its own bucket: the jobs' role may not be allowed to use it elsewhere. */
static const char *key_of_our_bucket(const struct spec_reader *r, const struct spec_stage *s)
{
    const char *ours = r->defaults->bucket;
    if (ours == NULL || s->output == NULL || s->worker == WORKER_NONE) {
        return NULL;
    }
    ours += strncmp(ours, "s3://", 5) == 0 ? 5 : 0;
    size_t n = strcspn(ours, "/");
    const char *to = strncmp(s->output, "s3://", 5) == 0 ? s->output + 5 : s->output;
    bool same = strcspn(to, "/") == n && strncmp(to, ours, n) == 0;
    return same ? r->defaults->bucket_kms_key : NULL;
}

/* A worker's job is told its key in one more variable. */
static void check_worker_key(struct spec_reader *r, const struct spec_node *p,
                             const struct spec_stage *s, const char *key)
{
    const int most = SPEC_PAIRS_MAX - WP_ENV_N - 1;
    if (s->worker == WORKER_NONE || key == NULL) {
        return;
    }
    if (s->environment_n > most) {
        spec_fault(r, p, "limit", "", "%d variables; a worker with output_kms_key takes at most %d",
                   s->environment_n, most);
    }
    if (strlen(key) > ENV_VALUE_MAX) {
        spec_fault(r, p, "limit", "", "output_kms_key is %zu bytes long; a worker takes %d",
                   strlen(key), ENV_VALUE_MAX);
    }
}

static void read_keys(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s,
                      struct spec_training *t)
{
    struct spec_node at;
    s->encrypt_traffic = r->encrypt_traffic;
    t->output_kms_key = r->output_kms_key != NULL ? r->output_kms_key : key_of_our_bucket(r, s);
    if (spec_child(r, p, "encrypt_traffic", false, &at)) {
        (void)spec_bool(r, &at, &s->encrypt_traffic);
    }
    if (spec_child(r, p, "output_kms_key", false, &at)) {
        (void)spec_kms_key(r, &at, &t->output_kms_key);
    }
    check_worker_key(r, p, s, t->output_kms_key);
    spec_volume_key(r, p, s);
    if (s->volume_kms_key != NULL && strstr(s->volume_kms_key, "alias/") != NULL) {
        bool own = spec_child(r, p, "volume_kms_key", false, &at);
        spec_fault(r, own ? &at : p, "pattern",
                   arena_printf(r->a, "what aws kms describe-key --key-id %.100s says is its Arn",
                                s->volume_kms_key),
                   "%svolume_kms_key '%.120s' is an alias: for a job's volume SageMaker takes a "
                   "key's id or ARN only",
                   own ? "" : "security.", s->volume_kms_key);
    }
}

/* arn:aws[a-z-]*:sagemaker:REGION:ACCOUNT:training-plan/NAME */
static void read_training_plan(struct spec_reader *r, const struct spec_node *p,
                               const struct spec_stage *s, struct spec_training *t)
{
    struct spec_node at;
    if (!spec_child(r, p, "training_plan", false, &at) ||
        !spec_text(r, &at, BRACES_VARS, 2048, &t->training_plan)) {
        return;
    }
    if (strncmp(t->training_plan, "arn:aws", 7) != 0 || strlen(t->training_plan) < 50 ||
        strstr(t->training_plan, ":sagemaker:") == NULL ||
        strstr(t->training_plan, ":training-plan/") == NULL) {
        spec_fault(r, &at, "pattern", "arn:aws:sagemaker:us-east-1:111122223333:training-plan/NAME",
                   "'%.120s' is not the ARN of a training plan", t->training_plan);
    } else if (s->spot) {
        spec_fault(r, &at, "conflict", "one of both", "a training plan has no spot instances");
    }
}

void spec_stage_tags(struct spec_reader *r, const struct spec_node *p, const char *service, int max,
                     struct spec_pair *ret, int *ret_n)
{
    struct spec_node at;
    if (!spec_child(r, p, "tags", false, &at)) {
        return;
    }
    spec_read_tags(r, &at, SPEC_STAGE_TAGS_MAX, ret, ret_n);
    if (*ret_n + r->tags_n > max) {
        spec_fault(r, &at, "limit", "fewer tags here or in the campaign",
                   "%d tags with the campaign's; %s takes %d besides drover's own",
                   *ret_n + r->tags_n, service, max);
    }
}

static void read_switches(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s,
                          struct spec_training *t)
{
    const struct {
        const char *key;
        bool *ret;
    } switches[] = {{"infra_check", &t->infra_check},
                    {"remote_debug", &t->remote_debug},
                    {"session_tags", &s->session_tags},
                    {"metrics_series", &t->metrics_series}};
    struct spec_node at;
    for (size_t i = 0; i < ARRAY_LEN(switches); i++) {
        if (spec_child(r, p, switches[i].key, false, &at)) {
            (void)spec_bool(r, &at, switches[i].ret);
        }
    }
    bool compressed = true;
    if (spec_child(r, p, "output_compression", false, &at)) {
        (void)spec_bool(r, &at, &compressed);
    }
    t->uncompressed = !compressed;
    spec_stage_tags(r, p, "SageMaker", SPEC_TAGS_MAX, t->tags, &t->tags_n);
    if (spec_child(r, p, "entrypoint", false, &at)) {
        if (s->worker != WORKER_NONE) {
            spec_fault(r, &at, "conflict", "leave it out", "our worker has its own command");
            return;
        }
        spec_lines(r, &at, BRACES_VARS, ARRAY_LEN(t->entrypoint), 256, t->entrypoint,
                   &t->entrypoint_n);
    }
}

/* SageMaker refuses a volume that is larger than the local disks it uses in its place. */
static void check_volume(struct spec_reader *r, const struct spec_node *p,
                         const struct spec_stage *s)
{
    struct spec_node at;
    if (!spec_child(r, p, "volume_gb", false, &at)) {
        return;
    }
    for (int i = 0; i < s->instance_type_n; i++) {
        int disk = catalog_disk_gb(s->instance_type[i]);
        if (disk > 0 && s->volume_gb > disk) {
            spec_fault(r, &at, "range", arena_printf(r->a, "at most %d", disk),
                       "%.40s uses its local disks of %d GB, and %d GB are asked for",
                       s->instance_type[i], disk, s->volume_gb);
            return;
        }
    }
}

void spec_training_read(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s,
                        struct spec_training *t)
{
    t->script = spec_has_script(p);
    spec_distribution_read(r, p, s, t);
    read_framework(r, p, s, t);
    read_image_config(r, p, s, t);
    read_script(r, p, s, t);
    spec_input_read(r, p, s, t);
    read_metrics(r, p, t);
    read_checkpoint(r, p, s, t);
    read_retry_strategy(r, p, s, t);
    read_max_pending(r, p, t);
    read_keys(r, p, s, t);
    read_training_plan(r, p, s, t);
    spec_debug_read(r, p, t);
    read_switches(r, p, s, t);
    check_volume(r, p, s);
}
