/* AddTags, ListTags, DeleteTags of training jobs, models, endpoint configs and endpoints: see
 * sagemaker_local.h. */
#include "local/app.h"
#include "local/hosting/hosting.h"
#include "sagemaker_local.h"

#define TAGS_MAX 50

/* Whose tags they are. */
struct tagged {
    struct local_job *job; /* NULL: a record */
    enum record_kind kind;
    const char *name;
    json_t *tags;
};

/* What the request's ARN names; false: answered. */
static bool tagged_find(struct request *r, struct tagged *ret)
{
    const char *arn = record_text(r->input, "ResourceArn");
    char prefix[SAGEMAKER_ARN_MAX];
    *ret = (struct tagged){.job = NULL};
    sagemaker_arn(r->app, "", prefix);
    if (strncmp(arn, prefix, strlen(prefix)) == 0) {
        ret->job = jobs_find(&r->app->jobs, arn + strlen(prefix));
        ret->tags = ret->job == NULL ? NULL : ret->job->tags;
    } else {
        ret->tags = hosting_tags(r->app, arn, &ret->kind, &ret->name);
    }
    if (ret->tags == NULL) {
        reply_error(r, 400, "ValidationException", "Requested resource not found.");
    }
    return ret->tags != NULL;
}

/* Replace the tags and keep them; false: answered. */
static bool tagged_set(struct request *r, const struct tagged *t, json_t *tags)
{
    struct err err = ERR_INIT;
    if (t->job == NULL) {
        (void)json_object_set(record_find(r->app, t->kind, t->name), "tags", tags);
        record_save(r->app, t->kind, t->name);
    } else {
        json_decref(t->job->tags);
        t->job->tags = json_incref(tags);
        if (!journal_write_job(&r->app->state, t->job, &err)) {
            reply_error(r, 500, "InternalFailure", "%s", err.message);
            return false;
        }
    }
    r->reply.sync = true;
    return true;
}

static void tag_set(json_t *tags, json_t *tag)
{
    size_t i;
    json_t *have;
    json_array_foreach(tags, i, have)
    {
        if (json_equal(json_object_get(have, "Key"), json_object_get(tag, "Key"))) {
            (void)json_array_set(tags, i, tag);
            return;
        }
    }
    (void)json_array_append(tags, tag);
}

void sagemaker_add_tags(struct request *r)
{
    struct tagged t;
    const json_t *add = json_object_get(r->input, "Tags");
    size_t i;
    json_t *tag;
    if (!tagged_find(r, &t)) {
        return;
    }
    AUTO_JSON json_t *tags = json_deep_copy(t.tags);
    bool ok = json_is_array(add);
    json_array_foreach(add, i, tag)
    {
        ok = ok && json_is_string(json_object_get(tag, "Key")) &&
             json_string_length(json_object_get(tag, "Key")) > 0 &&
             json_is_string(json_object_get(tag, "Value"));
        tag_set(tags, tag);
    }
    if (!ok || json_array_size(tags) > TAGS_MAX) {
        reply_error(r, 400, "ValidationException",
                    "1 validation error detected: Value at 'tags' failed to satisfy constraint: "
                    "at most 50 tags, each with a Key and a Value");
        return;
    }
    if (tagged_set(r, &t, tags)) {
        reply_json(r, json_pack("{s:O}", "Tags", tags));
    }
}

void sagemaker_list_tags(struct request *r)
{
    struct tagged t;
    if (tagged_find(r, &t)) {
        reply_json(r, json_pack("{s:O}", "Tags", t.tags));
    }
}

void sagemaker_delete_tags(struct request *r)
{
    struct tagged t;
    const json_t *keys = json_object_get(r->input, "TagKeys");
    if (!tagged_find(r, &t)) {
        return;
    }
    if (!json_is_array(keys) || json_array_size(keys) == 0) {
        reply_error(r, 400, "ValidationException",
                    "1 validation error detected: Value null at 'tagKeys' failed to satisfy "
                    "constraint: Member must not be null");
        return;
    }
    AUTO_JSON json_t *left = json_array();
    size_t i;
    json_t *tag;
    json_array_foreach(t.tags, i, tag)
    {
        bool gone = false;
        for (size_t k = 0; k < json_array_size(keys); k++) {
            gone = gone || json_equal(json_object_get(tag, "Key"), json_array_get(keys, k));
        }
        if (!gone) {
            (void)json_array_append(left, tag);
        }
    }
    if (tagged_set(r, &t, left)) {
        reply_json(r, json_object());
    }
}
