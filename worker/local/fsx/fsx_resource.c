/* What file systems, associations and tasks share, and tags: see fsx.h. */
#include "common/clock.h"
#include "common/rng.h"
#include "fsx.h"
#include "local/app.h"
#include "local/sagemaker/shape.h"
#include <stdio.h>

#define PAGE_MAX 2147483647

const struct fsx_class fsx_filesystems = {
    RECORD_FILE_SYSTEM, "fs",          "FileSystemId",      "file-system",
    "FileSystemIds",    "FileSystems", "FileSystemNotFound"};
const struct fsx_class fsx_associations = {RECORD_ASSOCIATION,
                                           "dra",
                                           "AssociationId",
                                           "association",
                                           "AssociationIds",
                                           "Associations",
                                           "DataRepositoryAssociationNotFound"};
const struct fsx_class fsx_tasks = {RECORD_FSX_TASK,
                                    "task",
                                    "TaskId",
                                    "task",
                                    "TaskIds",
                                    "DataRepositoryTasks",
                                    "DataRepositoryTaskNotFound"};

char *fsx_id_new(const struct fsx_class *c)
{
    uint8_t raw[9];
    char hex[19];
    rng_secret(raw, sizeof raw);
    str_hex(raw, sizeof raw, hex);
    return xasprintf("%s-%.17s", c->prefix, hex);
}

void fsx_arn(const struct app *app, const struct fsx_class *c, const char *id,
             char out[static FSX_ARN_MAX])
{
    (void)snprintf(out, FSX_ARN_MAX, "arn:aws:fsx:%s:%s:%s/%s", app->set.region, app->set.account,
                   c->arn_type, id);
}

json_t *fsx_named(struct request *r, const struct fsx_class *c, const char *key)
{
    json_t *o = record_find(r->app, c->record, record_text(r->input, key));
    if (o == NULL) {
        reply_error(r, 400, c->not_found, "%s '%.64s' does not exist.", c->id_key,
                    record_text(r->input, key));
    }
    return o;
}

bool fsx_repeated(struct request *r, const struct fsx_class *c, const char **ret_id)
{
    const char *token = record_text(r->input, "ClientRequestToken");
    const char *id;
    const json_t *o;
    *ret_id = NULL;
    json_object_foreach(r->app->records.all[c->record], id, o)
    {
        const json_t *asked = json_object_get(o, "asked");
        if (token[0] == '\0' || strcmp(record_text(asked, "ClientRequestToken"), token) != 0) {
            continue;
        }
        if (!json_equal(asked, r->input)) {
            reply_error(r, 400, "IncompatibleParameterError",
                        "A request with the same client request token but different settings was "
                        "made before");
            return false;
        }
        *ret_id = id;
        return true;
    }
    return true;
}

json_t *fsx_record(const struct request *r, const char *lifecycle, int64_t due_us)
{
    json_t *tags = json_object_get(r->input, "Tags");
    return json_pack("{s:O, s:o, s:s, s:I, s:I, s:s}", "asked", r->input, "tags",
                     json_is_array(tags) ? json_deep_copy(tags) : json_array(), "lifecycle",
                     lifecycle, "created", (json_int_t)clock_wall_us(), "due", (json_int_t)due_us,
                     "reason", "");
}

void fsx_enter(struct app *app, const struct fsx_class *c, const char *id, const char *lifecycle,
               int64_t due_us)
{
    json_t *o = record_find(app, c->record, id);
    record_set_text(o, "lifecycle", lifecycle);
    record_set_i64(o, "due", due_us);
    record_save(app, c->record, id);
}

void fsx_show_common(const struct app *app, const struct fsx_class *c, const char *id,
                     const json_t *o, json_t *into)
{
    char arn[FSX_ARN_MAX];
    fsx_arn(app, c, id, arn);
    record_set_text(into, c->id_key, id);
    record_set_text(into, "ResourceARN", arn);
    record_set_text(into, "Lifecycle", record_text(o, "lifecycle"));
    (void)json_object_set_new(into, "CreationTime", record_epoch(record_i64(o, "created")));
    (void)json_object_set(into, "Tags", json_object_get(o, "tags"));
    if (record_text(o, "reason")[0] != '\0') {
        (void)json_object_set_new(into, "FailureDetails",
                                  json_pack("{s:s}", "Message", record_text(o, "reason")));
    }
}

static bool is_wanted(const json_t *ids, const char *id)
{
    size_t i;
    const json_t *v;
    json_array_foreach(ids, i, v)
    {
        if (json_is_string(v) && strcmp(json_string_value(v), id) == 0) {
            return true;
        }
    }
    return json_array_size(ids) == 0;
}

/* The filter file-system-id; others hold for nothing here. */
static bool passes_filters(const json_t *filters, const json_t *asked)
{
    size_t i;
    const json_t *f;
    json_array_foreach(filters, i, f)
    {
        if (strcmp(record_text(f, "Name"), "file-system-id") == 0 &&
            !is_wanted(json_object_get(f, "Values"), record_text(asked, "FileSystemId"))) {
            return false;
        }
    }
    return true;
}

void fsx_describe_all(struct request *r, const struct fsx_class *c,
                      json_t *(*show)(const struct app *app, const char *id, const json_t *o))
{
    const json_t *ids = json_object_get(r->input, c->ids_key);
    const json_t *filters = json_object_get(r->input, "Filters");
    const char *id;
    const json_t *o;
    const char *token;
    int64_t max;
    int64_t skip = 0;
    int64_t at = 0;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const char *want = json_string_value(json_array_get(ids, i));
        if (record_find(r->app, c->record, want) == NULL) {
            reply_error(r, 400, c->not_found, "%s '%.64s' does not exist.", c->id_key,
                        want == NULL ? "" : want);
            return;
        }
    }
    if (!json_get_i64(r->input, "MaxResults", 1, PAGE_MAX, PAGE_MAX, &max, &err) ||
        !json_get_str(r->input, "NextToken", "0", &token, &err) ||
        !parse_i64(str_of(token), 0, RECORDS_MAX, &skip, &err)) {
        reply_error(r, 400, "BadRequest", "%s", err.message);
        return;
    }
    json_t *list = json_array();
    json_t *reply = json_pack("{s:o}", c->list_key, list);
    json_object_foreach(r->app->records.all[c->record], id, o)
    {
        if (!is_wanted(ids, id) || !passes_filters(filters, json_object_get(o, "asked")) ||
            at++ < skip) {
            continue;
        }
        if ((int64_t)json_array_size(list) == max) {
            char next[24];
            /* FSx's tokens are base64: its alphabet, in fours */
            (void)snprintf(next, sizeof next, "%08lld", (long long)(skip + max));
            record_set_text(reply, "NextToken", next);
            break;
        }
        (void)json_array_append_new(list, show(r->app, id, o));
    }
    reply_json(r, reply);
}

/* What an ARN names; NULL: answered. */
static json_t *tagged_find(struct request *r, enum record_kind *ret_kind, const char **ret_id)
{
    const struct fsx_class *const classes[] = {&fsx_filesystems, &fsx_associations, &fsx_tasks};
    const char *arn = record_text(r->input, "ResourceARN");
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        char prefix[FSX_ARN_MAX];
        fsx_arn(r->app, classes[i], "", prefix);
        size_t n = strlen(prefix);
        json_t *o =
            strncmp(arn, prefix, n) == 0 ? record_find(r->app, classes[i]->record, arn + n) : NULL;
        if (o != NULL) {
            *ret_kind = classes[i]->record;
            *ret_id = arn + n;
            return o;
        }
    }
    reply_error(r, 400, "ResourceNotFound", "The resource '%.200s' does not exist.", arn);
    return NULL;
}

void fsx_tag(struct request *r)
{
    static const struct shape_field fields[] = {
        {"ResourceARN", SHAPE_TEXT, true, 8, 512, NULL, NULL, NULL},
        {"Tags", SHAPE_LIST, true, 1, 50, NULL, NULL, &shape_tag},
    };
    static const struct request_shape shape = SHAPE(fields);
    enum record_kind kind;
    const char *id;
    size_t i;
    json_t *tag;
    json_t *o = shape_check(r, &shape) ? tagged_find(r, &kind, &id) : NULL;
    if (o == NULL) {
        return;
    }
    json_t *tags = json_object_get(o, "tags");
    json_array_foreach(json_object_get(r->input, "Tags"), i, tag)
    {
        for (size_t k = 0; k < json_array_size(tags); k++) {
            if (json_equal(json_object_get(json_array_get(tags, k), "Key"),
                           json_object_get(tag, "Key"))) {
                (void)json_array_remove(tags, k);
                break;
            }
        }
        (void)json_array_append(tags, tag);
    }
    record_save(r->app, kind, id);
    r->reply.sync = true;
    reply_json(r, json_object());
}

void fsx_list_tags(struct request *r)
{
    enum record_kind kind;
    const char *id;
    const json_t *o = tagged_find(r, &kind, &id);
    if (o != NULL) {
        reply_json(r, json_pack("{s:O}", "Tags", json_object_get(o, "tags")));
    }
}
