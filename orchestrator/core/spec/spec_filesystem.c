/* Reads a stage of kind lustre: the size of its file system, what fills it, and how long it lives;
 * and the channels of other stages that mount it.
 * Source: Amazon FSx API reference, CreateFileSystem; Amazon FSx for Lustre user guide,
 * "Deployment and storage class options". */
#include "common/str.h"
#include "spec_read.h"

#define EXPECT_BYTES_MAX (INT64_C(1) << 60)
#define IMPORT_MAX       1024 /* as the row of a file system holds it */
#define GIB              (INT64_C(1) << 30)

static const char size_hint[] = "size_gb: 1200, 2400 or more, or expect: {bytes: 9500000000000}";

/* The next size that FSx has: 1200, 2400, 4800, ... */
static int64_t legal_gib(int64_t gib)
{
    if (gib <= SPEC_STORAGE_GIB_STEP / 2) {
        return SPEC_STORAGE_GIB_STEP / 2;
    }
    return (gib + SPEC_STORAGE_GIB_STEP - 1) / SPEC_STORAGE_GIB_STEP * SPEC_STORAGE_GIB_STEP;
}

/* Said, or the bytes that are expected with a quarter more. */
static void read_size(struct spec_reader *r, const struct spec_node *p, struct spec_filesystem *f)
{
    struct spec_node at;
    struct spec_node bytes_at;
    int64_t n = 0;
    f->capacity_gib = SPEC_STORAGE_GIB_STEP / 2;
    if (spec_child(r, p, "size_gb", false, &at)) {
        if (yaml_get(p->node, "expect") != NULL) {
            spec_fault(r, &at, "conflict", size_hint, "size_gb and expect say two sizes");
        }
        if (spec_i64(r, &at, 1, SPEC_STORAGE_GIB_MAX, &n)) {
            f->capacity_gib = legal_gib(n);
        }
        return;
    }
    if (!spec_child(r, p, "expect", false, &at)) {
        spec_fault(r, p, "required", size_hint, "the size of the file system is not said");
        return;
    }
    if (!spec_is_map(r, &at, "{bytes: 9500000000000}")) {
        return;
    }
    spec_check_map(r, &at, SPEC_MAP_EXPECT_SIZE);
    if (spec_child(r, &at, "bytes", true, &bytes_at) &&
        spec_i64(r, &bytes_at, 1, EXPECT_BYTES_MAX, &n)) {
        f->capacity_gib = legal_gib((n + n / 4 + GIB - 1) / GIB);
        if (f->capacity_gib > SPEC_STORAGE_GIB_MAX) {
            spec_fault(r, &bytes_at, "range", "several stages of kind lustre",
                       "a file system of %lld GiB is larger than %lld", (long long)f->capacity_gib,
                       (long long)SPEC_STORAGE_GIB_MAX);
        }
    }
}

void spec_storage_tier(const char *deployment, int64_t throughput, char ret[SPEC_STORAGE_TIER_MAX])
{
    char number[8] = "";
    if (throughput > 0 && str_starts(str_of(deployment), "PERSISTENT")) {
        (void)snprintf(number, sizeof number, "/%d", (int)MIN(throughput, 99999));
    }
    (void)snprintf(ret, SPEC_STORAGE_TIER_MAX, "%.15s%s", deployment, number);
}

static bool throughput_ok(const char *deployment, int64_t n)
{
    static const int64_t first[] = {50, 100, 200};
    static const int64_t second[] = {125, 250, 500, 1000};
    bool is_first = strcmp(deployment, "PERSISTENT_1") == 0;
    const int64_t *of = is_first ? first : second;
    for (size_t i = 0; i < (is_first ? ARRAY_LEN(first) : ARRAY_LEN(second)); i++) {
        if (of[i] == n) {
            return true;
        }
    }
    return false;
}

static void read_deployment(struct spec_reader *r, const struct spec_node *p,
                            struct spec_filesystem *f)
{
    static const char *const words[] = {"SCRATCH_2", "PERSISTENT_1", "PERSISTENT_2"};
    static const int defaults[] = {0, 200, 125};
    struct spec_node at;
    int64_t n;
    int i = 0;
    if (spec_child(r, p, "deployment", false, &at)) {
        (void)spec_choice(r, &at, words, ARRAY_LEN(words), NULL, &i);
    }
    f->deployment = words[i];
    f->throughput = defaults[i];
    if (!spec_child(r, p, "throughput", false, &at) || !spec_i64(r, &at, 1, 1000, &n)) {
        return;
    }
    f->throughput = (int)n;
    if (i == 0) {
        spec_fault(r, &at, "conflict", "leave it out, or deployment: PERSISTENT_2",
                   "SCRATCH_2 has one throughput");
    } else if (!throughput_ok(f->deployment, n)) {
        spec_fault(r, &at, "range", i == 1 ? "50, 100 or 200" : "125, 250, 500 or 1000",
                   "%s has no %lld MB/s a TiB", f->deployment, (long long)n);
    }
}

static void read_import(struct spec_reader *r, const struct spec_node *p, struct spec_filesystem *f)
{
    struct spec_node at;
    const char *from;
    if (spec_child(r, p, "import", false, &at) &&
        spec_text(r, &at, BRACES_VARS, IMPORT_MAX, &from) && spec_s3(r, &at, from)) {
        f->import_from = from;
    }
    f->exports = f->import_from != NULL;
    if (!spec_child(r, p, "export", false, &at) || !spec_bool(r, &at, &f->exports)) {
        return;
    }
    if (f->exports && yaml_get(p->node, "import") == NULL) {
        spec_fault(r, &at, "required", "import: \"s3://bucket/prefix/\"",
                   "what jobs wrote goes back to where the rest came from");
    }
}

/* A file system costs until it is deleted, also when nobody thinks of it any more. */
static void read_life(struct spec_reader *r, const struct spec_node *p, struct spec_filesystem *f)
{
    static const char *const words[] = {"after_last_use", "after_ttl"};
    struct spec_node at;
    int i = 0;
    if (!spec_child(r, p, "ttl", false, &at)) {
        spec_fault(r, p, "required", "add 'ttl: 24h': the file system is deleted when it is over",
                   "'ttl' is missing: a file system costs money until it is deleted");
    } else {
        (void)spec_duration(r, &at, 1, SPEC_TTL_S_MAX, &f->ttl_s);
    }
    if (spec_child(r, p, "delete", false, &at)) {
        (void)spec_choice(r, &at, words, ARRAY_LEN(words), NULL, &i);
    }
    f->keep = i == 1;
}

static void read_vpc(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    spec_stage_security(r, p, s);
    s->role = s->role != NULL ? s->role : "";
    if (s->subnets_n == 0) {
        spec_fault(r, p, "required", "vpc: {subnets: [subnet-...], security_groups: [sg-...]}",
                   "'vpc' is missing: a file system lies in a subnet");
    } else if (s->subnets_n > 1) {
        spec_fault(r, p, "limit", "vpc: {subnets: [one of them], security_groups: [sg-...]}",
                   "a file system lies in one subnet, and %d are named", s->subnets_n);
    }
}

static void read_key(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    spec_volume_key(r, p, s);
    if (strcmp(s->filesystem->deployment, "SCRATCH_2") != 0) {
        return;
    }
    s->volume_kms_key = NULL; /* the campaign's is for volumes */
    if (spec_child(r, p, "volume_kms_key", false, &at)) {
        spec_fault(r, &at, "conflict", "leave it out, or deployment: PERSISTENT_2",
                   "SCRATCH_2 is encrypted with a key of FSx");
    }
}

void spec_filesystem_read(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_filesystem *f = arena_alloc(r->a, sizeof *f);
    *f = (struct spec_filesystem){.deployment = "SCRATCH_2"};
    s->filesystem = f;
    s->image = "";
    s->verify = VERIFY_NONE;
    read_deployment(r, p, f);
    read_size(r, p, f);
    read_import(r, p, f);
    read_life(r, p, f);
    read_vpc(r, p, s);
    read_key(r, p, s);
    spec_stage_tags(r, p, "FSx", SPEC_FSX_TAGS_MAX, f->tags, &f->tags_n);
    memcpy(s->retry, r->retry, sizeof s->retry);
    s->instance_type[0] = arena_printf(r->a, SPEC_STORAGE_PREFIX "%s", f->deployment);
    s->instance_type_n = 1;
}

static bool subnets_same(const struct spec_stage *a, const struct spec_stage *b)
{
    return a->subnets_n == 1 && b->subnets_n == 1 && strcmp(a->subnets[0], b->subnets[0]) == 0;
}

static void fault_unknown(struct spec_reader *r, const struct spec_node *at,
                          const struct read_stage *all, int n, const char *name)
{
    const char *names[SPEC_STAGES_MAX] = {NULL};
    char hint[256];
    size_t names_n = 0;
    for (int i = 0; i < n; i++) {
        if (all[i].stage->kind == SPEC_KIND_LUSTRE) {
            names[names_n++] = all[i].stage->name;
        }
    }
    spec_guess(name, names, names_n, hint, sizeof hint);
    spec_fault(r, at, "unknown_stage",
               names_n == 0 ? "{name: volume, kind: lustre, ...} among the stages" : hint,
               "there is no stage '%.64s' of kind lustre", name);
}

static void link_channel(struct spec_reader *r, const struct read_stage *all, int n,
                         const struct read_stage *of, const struct spec_channel *c)
{
    const struct spec_stage *s = of->stage;
    const struct read_stage *from = spec_stage_called(all, n, c->lustre_stage);
    struct spec_node at;
    const char *key = s->worker == WORKER_INDEX ? "from" : "input";
    if (!spec_child(r, &of->at, key, false, &at)) {
        at = of->at;
    }
    if (from == NULL || from->stage->kind != SPEC_KIND_LUSTRE) {
        fault_unknown(r, &at, all, n, c->lustre_stage);
        return;
    }
    if (!spec_stage_is_after(all, n, s, c->lustre_stage)) {
        spec_fault(r, &at, "required",
                   arena_printf(r->a, "needs: %.64s in this stage", c->lustre_stage),
                   "the stage does not wait for the file system of '%.64s'", c->lustre_stage);
    }
    if (from->stage->subnets_n == 1 && !subnets_same(s, from->stage)) {
        spec_fault(r, &at, "conflict",
                   arena_printf(r->a, "vpc: {subnets: [%.64s], security_groups: [sg-...]}",
                                from->stage->subnets[0]),
                   "jobs of this stage do not run in the subnet of the file system");
    }
    if (strcmp(s->training->input_mode, "File") != 0) {
        spec_fault(r, &at, "conflict", "input_mode: File", "file systems are mounted: mode File");
    }
}

void spec_filesystem_link(struct spec_reader *r, const struct read_stage *all, int n)
{
    for (int i = 0; i < n; i++) {
        const struct spec_training *t = all[i].stage->training;
        for (int k = 0; t != NULL && k < t->channels_n; k++) {
            if (t->channels[k].lustre_stage != NULL) {
                link_channel(r, all, n, &all[i], &t->channels[k]);
            }
        }
    }
}
