/* Reads what a campaign and its stages, or stages of all kinds, have: role, network, retries,
 * environment, and values in the forms that AWS prescribes. */
#include "common/cleanup.h"
#include "common/regex.h"
#include "common/secret_shape.h"
#include "core/catalog/catalog.h"
#include "core/catalog/image_ref.h"
#include "core/failure/retry_policy.h"
#include "spec_read.h"
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

/* ml.<family>.<size>; family and size are not checked further */
bool spec_instance_type_ok(const char *s)
{
    size_t n = strlen(s);
    if (n > INSTANCE_TYPE_MAX || strncmp(s, "ml.", 3) != 0) {
        return false;
    }
    const char *family = s + 3;
    size_t family_n = strspn(family, "abcdefghijklmnopqrstuvwxyz0123456789-");
    if (family_n == 0 || family[family_n] != '.') {
        return false;
    }
    const char *size = family + family_n + 1;
    return *size != '\0' && size[strspn(size, "abcdefghijklmnopqrstuvwxyz0123456789")] == '\0';
}

/* arn:aws[a-z-]*:iam::<12 digits>:role/<name> */
static bool role_ok(const char *s)
{
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz-";
    if (strncmp(s, "arn:aws", 7) != 0) {
        return false;
    }
    s += 7 + strspn(s + 7, lower);
    if (strncmp(s, ":iam::", 6) != 0 || strspn(s + 6, "0123456789") != 12) {
        return false;
    }
    s += 18;
    if (strncmp(s, ":role/", 6) != 0 || s[6] == '\0') {
        return false;
    }
    for (s += 6; *s != '\0'; s++) {
        if (!isalnum((unsigned char)*s) && strchr("_+=,.@-/", *s) == NULL) {
            return false;
        }
    }
    return true;
}

bool spec_role(struct spec_reader *r, const struct spec_node *p, const char **ret)
{
    const char *s;
    if (!spec_text(r, p, BRACES_VARS, 2048, &s)) {
        return false;
    }
    if (!role_ok(s)) {
        spec_fault(r, p, "pattern", "arn:aws:iam::111122223333:role/NAME",
                   "'%.120s' is not the ARN of a role", s);
        return false;
    }
    *ret = s;
    return true;
}

/* `other` finds what AWS does not allow in tags. */
static bool tag_text_ok(struct regex *other, const char *s)
{
    struct str found;
    return regex_first_group(other, str_of(s), &found) == REGEX_NONE;
}

static void regex_done(struct regex **re)
{
    regex_free(*re);
}

void spec_read_tags(struct spec_reader *r, const struct spec_node *p, size_t max_n,
                    struct spec_pair *ret, int *ret_n)
{
    CLEANUP(regex_done)
    struct regex *other = NULL;
    struct err err = ERR_INIT;
    (void)spec_pairs(r, p, BRACES_VARS, max_n, 128, 256, ret, ret_n);
    if (!regex_new("([^\\p{L}\\p{Z}\\p{N}_.:/=+\\-@])", &other, &err)) {
        spec_fault(r, p, "internal", "", "%s", err.message); /* no memory */
        return;
    }
    for (int i = 0; i < *ret_n; i++) {
        struct spec_node tag;
        const char *key = ret[i].key;
        if (!spec_child(r, p, key, false, &tag)) {
            continue;
        }
        if (strncasecmp(key, "aws:", 4) == 0 || strncmp(key, "drover-", 7) == 0) {
            spec_fault(r, &tag, "pattern", "another key", "'%.64s' is a reserved tag", key);
        } else if (!tag_text_ok(other, key) || !tag_text_ok(other, ret[i].value)) {
            spec_fault(r, &tag, "pattern", "letters, digits, blanks and _.:/=+-@",
                       "AWS allows no such character in a tag");
        }
    }
}

/* A key's id or ARN, or alias/NAME. */
bool spec_kms_key(struct spec_reader *r, const struct spec_node *p, const char **ret)
{
    const char *s;
    if (!spec_text(r, p, BRACES_VARS, 2048, &s)) {
        return false;
    }
    for (const char *c = s; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && strchr(":/_-", *c) == NULL) {
            spec_fault(r, p, "pattern", "alias/NAME, a key's id or its ARN",
                       "'%.120s' is not the name of a KMS key", s);
            return false;
        }
    }
    *ret = s;
    return true;
}

/* Why text is no place in S3: its bucket's name begins at name and is right for n bytes. */
static void fault_s3(struct spec_reader *r, const struct spec_node *p, const char *text,
                     const char *name, size_t n)
{
    bool scheme = strncmp(text, "s3://", 5) == 0;
    if (scheme && name[n] != '/' && name[n] != '\0' && (unsigned char)name[n] < 0x80) {
        spec_fault(r, p, "pattern", "lower-case letters, digits, '.' and '-'",
                   "'%.120s' is not a place in S3: no bucket's name has '%c'", text, name[n]);
    } else if (scheme && n > 0 && (name[n] == '/' || name[n] == '\0')) {
        spec_fault(r, p, "pattern", "s3://bucket/prefix/",
                   "'%.120s' is not a place in S3: a bucket's name has 3 to 63 characters", text);
    } else {
        spec_fault(r, p, "pattern", "s3://bucket/prefix/", "'%.120s' is not a place in S3", text);
    }
}

bool spec_s3(struct spec_reader *r, const struct spec_node *p, const char *text)
{
    size_t bucket_n = strncmp(text, "s3://", 5) == 0
                          ? strspn(text + 5, "abcdefghijklmnopqrstuvwxyz0123456789.-")
                          : 0;
    if (bucket_n < 3 || bucket_n > 63 ||
        (text[5 + bucket_n] != '/' && text[5 + bucket_n] != '\0')) {
        fault_s3(r, p, text, strlen(text) < 5 ? "" : text + 5, bucket_n);
        return false;
    }
    return true;
}

static bool id_ok(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)s[i]) && s[i] != '-') {
            return false;
        }
    }
    return n > 0 && n <= 32;
}

static void read_ids(struct spec_reader *r, const struct spec_node *p, const char *key, size_t max,
                     const char **ret, int *ret_n)
{
    struct spec_node at;
    if (!spec_child(r, p, key, true, &at) ||
        !spec_texts(r, &at, BRACES_VARS, max, SPEC_STRING_MAX, ret, ret_n)) {
        return;
    }
    for (int i = 0; i < *ret_n; i++) {
        if (!id_ok(ret[i])) {
            spec_fault(r, &at, "pattern", "like subnet-0a1b2c or sg-0a1b2c", "'%.64s' is no id",
                       ret[i]);
        }
    }
    if (*ret_n == 0) {
        spec_fault(r, &at, "required", "", "an empty list");
    }
}

void spec_read_vpc(struct spec_reader *r, const struct spec_node *p, const char **subnets,
                   int *subnets_n, const char **groups, int *groups_n)
{
    *subnets_n = 0;
    *groups_n = 0;
    if (p->node->kind == YAML_STRING && strcmp(p->node->text, "none") == 0) {
        return;
    }
    if (!spec_is_map(r, p, "none, or {subnets: [...], security_groups: [...]}")) {
        return;
    }
    spec_check_map(r, p, SPEC_MAP_VPC);
    read_ids(r, p, "subnets", 16, subnets, subnets_n);
    read_ids(r, p, "security_groups", 5, groups, groups_n);
}

static void read_keep_alive(struct spec_reader *r, const struct spec_node *p, int64_t *ret)
{
    static const char hint[] = "auto, off, or a duration from 1s to 60m like 15m";
    struct err err = ERR_INIT;
    const struct yaml_node *node = p->node;
    int64_t seconds;
    if (node->kind == YAML_STRING && strcmp(node->text, "auto") == 0) {
        *ret = SPEC_KEEP_ALIVE_AUTO;
    } else if (node->kind == YAML_STRING && strcmp(node->text, "off") == 0) {
        *ret = 0;
    } else if (node->kind != YAML_STRING ||
               !parse_duration_s(str_of(node->text), 0, INT64_MAX, &seconds, &err)) {
        spec_fault(r, p, "type", hint, "how long instances are kept is a duration, auto or off");
    } else if (seconds < 1 || seconds > SPEC_KEEP_ALIVE_MAX_S) {
        spec_fault(r, p, "range", hint, "'%.40s' is not within 1 to %d seconds", node->text,
                   SPEC_KEEP_ALIVE_MAX_S);
    } else {
        *ret = seconds;
    }
}

void spec_read_warm(struct spec_reader *r, const struct spec_node *p, struct spec_warm *w)
{
    struct spec_node at;
    if (!spec_is_map(r, p, "{keep_alive: auto, max_idle_cost: 25 USD}")) {
        return;
    }
    spec_check_map(r, p, SPEC_MAP_WARM_POOL);
    if (spec_child(r, p, "keep_alive", false, &at)) {
        read_keep_alive(r, &at, &w->keep_alive_s);
    }
    if (spec_child(r, p, "max_idle_cost", false, &at)) {
        (void)spec_money(r, &at, &w->max_idle_cost_musd);
    }
    if (spec_child(r, p, "kill_when_queue_empty", false, &at)) {
        (void)spec_bool(r, &at, &w->end_when_queue_empty);
    }
}

static bool read_cause(struct spec_reader *r, const struct spec_node *p, enum cause *ret)
{
    static const char *const names[] = {
#define X(c, name, counts_, times_, from_s, to_s, remedy) name,
#include "core/failure/cause.def"
#undef X
    };
    int i;
    if (!spec_choice(r, p, names + 1, ARRAY_LEN(names) - 1, NULL, &i)) {
        return false;
    }
    *ret = (enum cause)(i + 1);
    return true;
}

/* "auto", "30s" or "30s..10m" */
static void read_wait(struct spec_reader *r, const struct spec_node *p, struct spec_retry *row)
{
    struct str t = {p->node->text, p->node->text_n};
    struct err err = ERR_INIT;
    if (p->node->kind == YAML_STRING && str_eq_cstr(t, "auto")) {
        return;
    }
    struct str from = t;
    struct str to = t;
    ptrdiff_t dots = p->node->kind == YAML_STRING ? str_find(t, STR("..")) : -1;
    if (dots >= 0) {
        from.n = (size_t)dots;
        to = (struct str){t.p + dots + 2, t.n - (size_t)dots - 2};
    }
    int64_t from_s;
    int64_t to_s;
    if (p->node->kind != YAML_STRING || !parse_duration_s(from, 0, 86400, &from_s, &err) ||
        !parse_duration_s(to, 0, 86400, &to_s, &err) || from_s > to_s) {
        spec_fault(r, p, "type", "auto, 30s or 30s..10m", "no wait that grows from one to another");
        return;
    }
    row->wait_from_s = from_s;
    row->wait_to_s = to_s;
}

static void read_times(struct spec_reader *r, const struct spec_node *p, struct spec_retry *row)
{
    int64_t n;
    if (p->node->kind == YAML_STRING && strcmp(p->node->text, "forever") == 0) {
        row->times = -1;
    } else if (p->node->kind == YAML_STRING) {
        spec_fault(r, p, "type", "a whole number, or forever", "'%.40s' is no number of times",
                   p->node->text);
    } else if (spec_i64(r, p, 0, 1000, &n)) {
        row->times = (int)n;
    }
}

/* "x2" or "x1.5" as 200 or 150; more than 1. */
static bool read_factor(struct spec_reader *r, const struct spec_node *p, int *ret_x100)
{
    static const char hint[] = "a factor like x2 or x1.5, more than x1 and at most x100";
    struct str t = {p->node->text, p->node->text_n};
    struct err err = ERR_INIT;
    int64_t x100;
    if (p->node->kind != YAML_STRING || t.n < 2 || t.p[0] != 'x' ||
        !parse_decimal((struct str){t.p + 1, t.n - 1}, 2, 0, INT64_MAX, &x100, &err)) {
        spec_fault(r, p, "type", hint, "no factor to multiply by");
        return false;
    }
    if (x100 <= 100 || x100 > SPEC_CHANGE_X100_MAX) {
        spec_fault(r, p, "range", hint, "'%.40s' changes nothing, or too much", p->node->text);
        return false;
    }
    *ret_x100 = (int)x100;
    return true;
}

/* max: gigabytes with volume_gb, a duration with max_runtime. */
static void read_change_max(struct spec_reader *r, const struct spec_node *p, bool volume,
                            bool runtime, struct spec_change *ret)
{
    int64_t n;
    if (p->node->kind == YAML_INT && volume && spec_i64(r, p, 1, VOLUME_GB_MAX, &n)) {
        ret->volume_max_gb = (int)n;
    } else if (p->node->kind == YAML_STRING && runtime) {
        (void)spec_duration(r, p, 1, SPEC_RUNTIME_S_MAX, &ret->runtime_max_s);
    } else if (p->node->kind != YAML_INT || !volume) {
        spec_fault(r, p, "type", "gigabytes for volume_gb, a duration for max_runtime",
                   "'max' does not fit what is changed");
    }
}

/* none, or {volume_gb: x2, max: 2000}, {instance_type: next}, {max_runtime: x1.5} */
static bool read_change(struct spec_reader *r, const struct spec_node *p, struct spec_change *ret)
{
    static const char *const nexts[] = {"next"};
    *ret = (struct spec_change){0};
    if (p->node->kind == YAML_STRING && strcmp(p->node->text, "none") == 0) {
        return true;
    }
    int before = r->faults->n;
    if (!spec_is_map(r, p,
                     "none, {volume_gb: x2, max: 2000}, {instance_type: next} or "
                     "{max_runtime: x1.5}")) {
        return false;
    }
    spec_check_map(r, p, SPEC_MAP_CHANGE);
    struct spec_node at;
    int i;
    bool volume = spec_child(r, p, "volume_gb", false, &at);
    if (volume) {
        (void)read_factor(r, &at, &ret->volume_x100);
    }
    bool runtime = spec_child(r, p, "max_runtime", false, &at);
    if (runtime) {
        (void)read_factor(r, &at, &ret->runtime_x100);
    }
    bool type = spec_child(r, p, "instance_type", false, &at);
    if (type && spec_choice(r, &at, nexts, 1, NULL, &i)) {
        ret->next = NEXT_UP;
    }
    if (!volume && !runtime && !type) {
        if (r->faults->n == before) {
            spec_fault(r, p, "required", "none, or what is to change", "nothing is changed");
        }
        return false;
    }
    if (spec_child(r, p, "max", false, &at)) {
        read_change_max(r, &at, volume, runtime, ret);
    }
    return r->faults->n == before;
}

static void read_row(struct spec_reader *r, const struct spec_node *p, struct spec_retry *rows)
{
    if (!spec_is_map(r, p, "{cause: internal, wait: 30s..10m, times: 5}")) {
        return;
    }
    spec_check_map(r, p, SPEC_MAP_RETRY);
    struct spec_node at;
    struct spec_retry said = {.times = INT32_MIN, .wait_from_s = -1};
    bool counts = false;
    if (spec_child(r, p, "wait", false, &at)) {
        read_wait(r, &at, &said);
    }
    if (spec_child(r, p, "times", false, &at)) {
        read_times(r, &at, &said);
    }
    bool has_counts = spec_child(r, p, "counts", false, &at) && spec_bool(r, &at, &counts);
    bool has_change = spec_child(r, p, "change", false, &at) && read_change(r, &at, &said.change);
    if (!spec_child(r, p, "cause", true, &at)) {
        return;
    }
    bool list = at.node->kind == YAML_LIST;
    for (size_t i = 0; i < (list ? at.node->n : 1); i++) {
        char key[24];
        struct spec_node one = list ? spec_item(&at, i, key) : at;
        enum cause c;
        if (!read_cause(r, &one, &c)) {
            continue;
        }
        struct spec_retry row = rows[c].set ? rows[c] : *retry_default(c);
        row.times = said.times != INT32_MIN ? said.times : row.times;
        row.wait_from_s = said.wait_from_s >= 0 ? said.wait_from_s : row.wait_from_s;
        row.wait_to_s = said.wait_from_s >= 0 ? said.wait_to_s : row.wait_to_s;
        row.counts = has_counts ? counts : row.counts;
        if (has_change) {
            row.set_change = true;
            row.change = said.change;
            /* A wait for capacity tries all types in turn; a need for more moves up. */
            bool around = c == CAUSE_CAPACITY || c == CAUSE_SPOT_INTERRUPTED || c == CAUSE_QUOTA;
            row.change.next = row.change.next == NEXT_UP && around ? NEXT_AROUND : row.change.next;
        }
        rows[c] = row;
    }
}

void spec_read_retry(struct spec_reader *r, const struct spec_node *p, struct spec_retry *rows)
{
    if (!spec_is_list(r, p, 64, "[{cause: internal, times: 5}, ...]")) {
        return;
    }
    for (size_t i = 0; i < p->node->n; i++) {
        char key[24];
        struct spec_node row = spec_item(p, i, key);
        read_row(r, &row, rows);
    }
}

/* registry/repository[:tag][@sha256:digest] */
static bool image_ok(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)s[i]) && strchr("._-/:@", s[i]) == NULL) {
            return false;
        }
    }
    const char *digest = strchr(s, '@');
    if (digest != NULL && (strncmp(digest, "@sha256:", 8) != 0 || strlen(digest + 8) != 64 ||
                           digest[8 + strspn(digest + 8, "0123456789abcdef")] != '\0')) {
        return false;
    }
    return n > 0 && n <= 255 && isalnum((unsigned char)s[0]);
}

/* SageMaker takes images of its own region, and AWS's from the registry of that region. */
static bool check_registry(struct spec_reader *r, const struct spec_node *p, const char *image)
{
    struct image_ref ref;
    const char *region = r->defaults->region;
    if (region == NULL || r->defaults->any_region || !image_ref_parse(image, &ref)) {
        return true;
    }
    const char *aws = catalog_registry(region);
    if (strcmp(ref.region, region) != 0) {
        spec_fault(r, p, "conflict",
                   arena_printf(r->a, "an image in %s: push or replicate it there", region),
                   "the image is in %s, and SageMaker of %s takes those of its own region",
                   ref.region, region);
        return false;
    }
    if (aws != NULL && catalog_is_registry(ref.account) && strcmp(ref.account, aws) != 0) {
        spec_fault(r, p, "conflict", arena_printf(r->a, "account %s", aws),
                   "AWS's images of %s are not those of account %s", region, ref.account);
        return false;
    }
    return true;
}

bool spec_image(struct spec_reader *r, const struct spec_node *p, const char **ret)
{
    if (!spec_text(r, p, BRACES_VARS, 255, ret)) {
        return false;
    }
    if (!image_ok(*ret)) {
        spec_fault(r, p, "pattern", "111122223333.dkr.ecr.eu-west-1.amazonaws.com/name@sha256:...",
                   "'%.120s' is no image", *ret);
        return false;
    }
    return check_registry(r, p, *ret);
}

/* A type that AWS may have by now is taken when limits.instances names it; other sizes of a known
 * family are taken with a warning. */
void spec_check_type(struct spec_reader *r, const struct spec_node *p, const char *type,
                     bool hosting)
{
    bool named = hosting ? catalog_family_hosts(type) : catalog_family_known(type);
    for (int i = 0; i < r->named_types_n && !named; i++) {
        named = strcmp(r->named_types[i], type) == 0;
    }
    if (!spec_instance_type_ok(type)) {
        spec_fault(r, p, "pattern", "like ml.c5.18xlarge", "'%.64s' is no instance type", type);
    } else if (!named) {
        const char *guess = catalog_type_guess(type);
        spec_fault(r, p, "value",
                   arena_printf(r->a,
                                "%s%s%sa type newer than this drover: name it in "
                                "limits: {instances: {%.64s: 1}}",
                                guess != NULL ? "did you mean " : "", guess != NULL ? guess : "",
                                guess != NULL ? "? " : "", type),
                   "'%.64s' is not known", type);
    }
}

void spec_stage_security(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    s->role = r->role;
    if (spec_child(r, p, "role", false, &at)) {
        (void)spec_role(r, &at, &s->role);
    }
    if (spec_child(r, p, "vpc", false, &at)) {
        spec_read_vpc(r, &at, s->subnets, &s->subnets_n, s->security_groups, &s->security_groups_n);
    } else {
        memcpy(s->subnets, r->subnets, sizeof s->subnets);
        memcpy(s->security_groups, r->security_groups, sizeof s->security_groups);
        s->subnets_n = r->subnets_n;
        s->security_groups_n = r->security_groups_n;
    }
    if (spec_child(r, p, "network_isolation", false, &at)) {
        (void)spec_bool(r, &at, &s->network_isolation);
    }
}

static bool env_key_ok(const char *s)
{
    if (isdigit((unsigned char)s[0]) || strncmp(s, "DROVER_", 7) == 0) {
        return false;
    }
    for (; *s != '\0'; s++) {
        if (!isalnum((unsigned char)*s) && *s != '_') {
            return false;
        }
    }
    return true;
}

void spec_no_secrets(struct spec_reader *r, const struct spec_node *map,
                     const struct spec_pair *pairs, int n, bool by_name)
{
    for (int i = 0; i < n; i++) {
        struct str value = str_of(pairs[i].value);
        const char *what = by_name ? secret_shape_named(pairs[i].key, value) : secret_shape(value);
        for (size_t k = 0; what != NULL && k < map->node->n; k++) {
            if (strcmp(map->node->keys[k], pairs[i].key) == 0) {
                const struct spec_node at = {map, pairs[i].key, map->node->items[k],
                                             map->node->key_pos[k]};
                spec_fault(r, &at, "secret", SPEC_SECRET_HINT, "the value looks like %s", what);
                break;
            }
        }
    }
}

void spec_stage_environment(struct spec_reader *r, const struct spec_node *p, enum braces braces,
                            size_t max_n, size_t max, struct spec_stage *s)
{
    struct spec_node at;
    if (!spec_child(r, p, "environment", false, &at)) {
        return;
    }
    (void)spec_pairs(r, &at, braces, max_n, max, max, s->environment, &s->environment_n);
    spec_no_secrets(r, &at, s->environment, s->environment_n, true);
    for (size_t i = 0; at.node->kind == YAML_MAP && i < at.node->n; i++) {
        const struct spec_node key = {&at, at.node->keys[i], at.node->items[i],
                                      at.node->key_pos[i]};
        if (!env_key_ok(at.node->keys[i])) {
            spec_fault(r, &key, "pattern", "letters, digits and _, not beginning with DROVER_",
                       "'%.64s' cannot name an environment variable", at.node->keys[i]);
        }
    }
}
