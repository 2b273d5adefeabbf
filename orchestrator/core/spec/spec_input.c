/* Reads `input` and `input_mode`: the channels of a training job. */
#include "spec_read.h"
#include <ctype.h>

static const char *const modes[] = {"File", "FastFile", "Pipe"};
static const char volume_prefix[] = "lustre:";

bool spec_is_volume(const struct yaml_node *n)
{
    return n->kind == YAML_STRING && strncmp(n->text, volume_prefix, strlen(volume_prefix)) == 0;
}

static bool channel_name_ok(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)s[i]) && strchr("._-", s[i]) == NULL) {
            return false;
        }
    }
    return n > 0 && n <= 64;
}

static void read_word(struct spec_reader *r, const struct spec_node *p, const char *key,
                      const char *const *words, size_t n, const char **ret)
{
    struct spec_node at;
    int i;
    if (spec_child(r, p, key, false, &at) && spec_choice(r, &at, words, n, NULL, &i)) {
        *ret = words[i];
    }
}

/* "STAGE/folder" of "lustre:STAGE/folder". */
static void read_stage_volume(struct spec_reader *r, const struct spec_node *p, const char *text,
                              struct spec_channel *c)
{
    size_t n = strcspn(text, "/");
    const char *path = text + n;
    c->lustre_stage = arena_strndup(r->a, text, n);
    c->file_system_type = "FSxLustre";
    c->access = "rw";
    c->directory = strcmp(path, "/") == 0 ? "" : path;
    if (strstr(path, "..") != NULL || strchr(path, '{') != NULL) {
        spec_fault(r, p, "pattern", "lustre:volume, or lustre:volume/folder",
                   "'%.80s' is no folder of a file system", path);
    }
}

/* {uri}, or a variable that parts sent to droverd bring: s3:// only when it is expanded. */
static bool begins_with_place(const struct spec_reader *r, const char *from)
{
    struct str literal;
    struct spec_field f;
    bool has_field;
    if (!spec_next_piece(&from, &literal, &has_field, &f, NULL) || literal.n > 0 || !has_field) {
        return false;
    }
    bool found = str_eq_cstr(f.name, "uri");
    for (int i = 0; i < r->task_vars_n && !found; i++) {
        found = str_eq_cstr(f.name, r->task_vars[i]);
    }
    return found;
}

static void read_from(struct spec_reader *r, const struct spec_node *p, struct spec_channel *c)
{
    const char *from;
    if (!spec_text(r, p, BRACES_TEMPLATE, 1024, &from)) {
        return;
    }
    if (strncmp(from, volume_prefix, strlen(volume_prefix)) == 0) {
        read_stage_volume(r, p, from + strlen(volume_prefix), c);
        return;
    }
    if (begins_with_place(r, from) || spec_s3(r, p, from)) {
        c->from = from;
    }
}

/* fs- and 8 to 17 hexadecimal digits */
static bool file_system_ok(const char *s)
{
    size_t n = strncmp(s, "fs-", 3) == 0 ? strspn(s + 3, "0123456789abcdef") : 0;
    return n >= 8 && n <= 18 && s[3 + n] == '\0';
}

/* {file_system: fs-0123456789abcdef0, path: /1234abcd/data, access: ro} */
static void read_file_system(struct spec_reader *r, const struct spec_node *p,
                             const struct spec_stage *s, const struct spec_training *t,
                             struct spec_channel *c)
{
    static const char *const types[] = {"FSxLustre", "EFS"};
    static const char *const accesses[] = {"ro", "rw"};
    struct spec_node at;
    spec_check_map(r, p, SPEC_MAP_FILE_SYSTEM);
    c->file_system_type = types[0];
    c->access = accesses[0];
    if (spec_child(r, p, "file_system", true, &at) &&
        spec_text(r, &at, BRACES_VARS, 64, &c->file_system) && !file_system_ok(c->file_system)) {
        spec_fault(r, &at, "pattern", "like fs-0123456789abcdef0", "'%.40s' is no file system",
                   c->file_system);
    }
    c->file_system = c->file_system == NULL ? "" : c->file_system;
    read_word(r, p, "file_system_type", types, ARRAY_LEN(types), &c->file_system_type);
    read_word(r, p, "access", accesses, ARRAY_LEN(accesses), &c->access);
    if (spec_child(r, p, "content_type", false, &at)) {
        (void)spec_text(r, &at, BRACES_VARS, 256, &c->content_type);
    }
    if (spec_child(r, p, "path", true, &at) &&
        spec_text(r, &at, BRACES_VARS, SPEC_STRING_MAX, &c->directory) && c->directory[0] != '/') {
        spec_fault(r, &at, "pattern", "/MOUNT/folder; FSx says MountName in DescribeFileSystems",
                   "a path on a file system begins with a slash");
    }
    if (s->subnets_n == 0) {
        spec_fault(r, p, "required", "vpc: {subnets: [subnet-...], security_groups: [sg-...]}",
                   "a file system is reached inside its VPC");
    } else if (strcmp(t->input_mode, "File") != 0) {
        spec_fault(r, p, "conflict", "input_mode: File", "file systems are mounted: mode File");
    }
}

/* A file system of the campaign is mounted: it has nothing of what S3 channels have. */
static void check_mounted(struct spec_reader *r, const struct spec_node *p)
{
    static const char *const keys[] = {"type",           "spread",       "compression",
                                       "record_wrapper", "shuffle_seed", "attributes"};
    struct spec_node at;
    if (spec_child(r, p, "mode", false, &at) && strcmp(at.node->text, "File") != 0) {
        spec_fault(r, &at, "conflict", "mode: File", "file systems are mounted: mode File");
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (spec_child(r, p, keys[i], false, &at)) {
            spec_fault(r, &at, "conflict", "leave it out", "'%s' is for channels of S3", keys[i]);
        }
    }
}

/* True when the text can be the URI of an object. */
static bool names_object(const char *from)
{
    size_t n = strlen(from);
    bool literal = strchr(from, '{') == NULL;
    return n > 0 && from[n - 1] != '/' && (!literal || strchr(from + strlen("s3://"), '/') != NULL);
}

/* Rules of one S3 channel. Its mode is its own or the job's. */
static void check_s3(struct spec_reader *r, const struct spec_node *p,
                     const struct spec_training *t, const struct spec_channel *c)
{
    const char *mode = c->mode != NULL ? c->mode : t->input_mode;
    bool pipe = strcmp(mode, "Pipe") == 0;
    bool augmented = strcmp(c->type, "AugmentedManifestFile") == 0;
    if (strcmp(c->type, "S3Prefix") != 0 && !names_object(c->from)) {
        spec_fault(r, p, "pattern", "from: \"s3://bucket/lists/part.manifest\"",
                   "type %s needs one object, '%.80s' is a prefix", c->type, c->from);
    } else if (augmented && !pipe) {
        spec_fault(r, p, "conflict", "mode: Pipe", "an augmented manifest comes in mode Pipe only");
    } else if (augmented && c->attributes_n == 0) {
        spec_fault(r, p, "required", "attributes: [source-ref, class]",
                   "an augmented manifest needs the attributes to send");
    } else if (!augmented && c->attributes_n > 0) {
        spec_fault(r, p, "conflict", "type: AugmentedManifestFile",
                   "only augmented manifests have attributes");
    } else if (strcmp(mode, "FastFile") == 0 && strcmp(c->type, "S3Prefix") != 0) {
        spec_fault(r, p, "conflict", "mode: File, or type: S3Prefix",
                   "mode FastFile reads prefixes, no manifests");
    } else if (c->compression != NULL && strcmp(c->compression, "Gzip") == 0 && !pipe) {
        spec_fault(r, p, "conflict", "mode: Pipe", "SageMaker unpacks gzip in mode Pipe only");
    } else if (c->record_wrapper != NULL && strcmp(c->record_wrapper, "RecordIO") == 0 && !pipe) {
        spec_fault(r, p, "conflict", "mode: Pipe", "RecordIO is for mode Pipe only");
    }
}

static void read_s3(struct spec_reader *r, const struct spec_node *p, const struct spec_training *t,
                    struct spec_channel *c)
{
    static const char *const types[] = {"S3Prefix", "ManifestFile", "AugmentedManifestFile"};
    static const char *const spreads[] = {"FullyReplicated", "ShardedByS3Key"};
    static const char *const compressions[] = {"None", "Gzip"};
    static const char *const wrappers[] = {"None", "RecordIO"};
    struct spec_node at;
    int before = r->faults->n;
    spec_check_map(r, p, SPEC_MAP_CHANNEL);
    if (spec_child(r, p, "from", true, &at)) {
        read_from(r, &at, c);
    }
    read_word(r, p, "mode", modes, ARRAY_LEN(modes), &c->mode);
    read_word(r, p, "type", types, ARRAY_LEN(types), &c->type);
    read_word(r, p, "spread", spreads, ARRAY_LEN(spreads), &c->spread);
    read_word(r, p, "compression", compressions, ARRAY_LEN(compressions), &c->compression);
    read_word(r, p, "record_wrapper", wrappers, ARRAY_LEN(wrappers), &c->record_wrapper);
    if (spec_child(r, p, "content_type", false, &at)) {
        (void)spec_text(r, &at, BRACES_VARS, 256, &c->content_type);
    }
    if (spec_child(r, p, "shuffle_seed", false, &at)) {
        (void)spec_i64(r, &at, 0, INT64_MAX, &c->shuffle_seed);
    }
    if (spec_child(r, p, "attributes", false, &at)) {
        (void)spec_texts(r, &at, BRACES_VARS, SPEC_ATTRIBUTES_MAX, 256, c->attributes,
                         &c->attributes_n);
    }
    if (r->faults->n == before && c->lustre_stage != NULL) {
        check_mounted(r, p);
    } else if (r->faults->n == before) {
        check_s3(r, p, t, c);
    }
}

static void read_channel(struct spec_reader *r, const struct spec_node *p,
                         const struct spec_stage *s, struct spec_training *t)
{
    struct spec_channel *c = &t->channels[t->channels_n++];
    *c = (struct spec_channel){.type = "S3Prefix", .spread = "FullyReplicated", .shuffle_seed = -1};
    c->name = arena_strndup(r->a, p->key, strlen(p->key));
    if (!channel_name_ok(p->key)) {
        spec_fault(r, p, "pattern", "letters, digits, '.', '_' and '-', 64 at most",
                   "'%.80s' cannot name a channel", p->key);
    } else if (t->script && s->network_isolation && strcmp(p->key, "code") == 0) {
        spec_fault(r, p, "conflict", "another name",
                   "an isolated job gets its script by a channel named code");
    }
    if (p->node->kind == YAML_STRING) {
        read_from(r, p, c);
    } else if (spec_is_map(r, p,
                           "\"s3://bucket/prefix/\", or {from: \"s3://...\", mode: FastFile}")) {
        if (yaml_get(p->node, "file_system") != NULL) {
            read_file_system(r, p, s, t, c);
        } else {
            read_s3(r, p, t, c);
        }
    }
}

/* What worker index reads from a file system of this campaign is a channel of its job. */
static void read_index_volume(struct spec_reader *r, const struct spec_node *p,
                              struct spec_training *t)
{
    struct spec_node at;
    if (spec_child(r, p, "from", false, &at) && spec_is_volume(at.node)) {
        struct spec_channel *c = &t->channels[t->channels_n++];
        *c = (struct spec_channel){.name = SPEC_INDEX_CHANNEL,
                                   .type = "S3Prefix",
                                   .spread = "FullyReplicated",
                                   .shuffle_seed = -1};
        read_from(r, &at, c);
    }
}

void spec_input_read(struct spec_reader *r, const struct spec_node *p, const struct spec_stage *s,
                     struct spec_training *t)
{
    struct spec_node at;
    t->input_mode = modes[0];
    read_word(r, p, "input_mode", modes, ARRAY_LEN(modes), &t->input_mode);
    if (s->worker == WORKER_INDEX) {
        read_index_volume(r, p, t);
    }
    if (!spec_child(r, p, "input", false, &at)) {
        return;
    }
    if (s->worker != WORKER_NONE) {
        spec_fault(r, &at, "unsupported", "hyperparameters: {url_list: \"{uri}\"}",
                   "our worker reads its input from S3 by itself");
        return;
    }
    if (!spec_is_map(r, &at, "{training: \"s3://bucket/prefix/\"}")) {
        return;
    }
    const size_t max = (size_t)SPEC_CHANNELS_MAX - (t->script && s->network_isolation);
    if (at.node->n == 0 || at.node->n > max) {
        spec_fault(r, &at, "limit", "{training: \"s3://bucket/prefix/\"}",
                   "%zu channels; 1 to %zu are allowed", at.node->n, max);
        return;
    }
    for (size_t i = 0; i < at.node->n; i++) {
        const struct spec_node one = {&at, at.node->keys[i], at.node->items[i],
                                      at.node->items[i]->pos};
        read_channel(r, &one, s, t);
    }
}
