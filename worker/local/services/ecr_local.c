/* ECR: BatchGetImage over the images of the configuration. A tag's digest is that of what it runs,
 * so that another program under the same tag is another image. See services.h. */
#include "common/hash.h"
#include "local/app.h"
#include "services.h"
#include <stdio.h>

#define IMAGES_ASKED_MAX 100

static void digest_of(const char *uri, const json_t *argv, char ret[static SHA256_HEX_N])
{
    AUTO_FREE char *program = json_dumps(argv, JSON_COMPACT);
    AUTO_FREE char *text = xasprintf("%s %s", uri, program);
    hash_sha256_hex(text, strlen(text), ret);
}

json_t *ecr_image_argv(const struct app *app, const char *image)
{
    const char *key, *at = image != NULL ? strstr(image, "@sha256:") : NULL;
    json_t *argv = image != NULL ? json_object_get(app->set.images, image) : NULL;
    char digest[SHA256_HEX_N];
    if (argv == NULL && at != NULL) {
        json_object_foreach(app->set.images, key, argv)
        {
            digest_of(key, argv, digest);
            if (strncmp(key, image, (size_t)(at - image)) == 0 &&
                strcmp(digest, at + strlen("@sha256:")) == 0) {
                return argv;
            }
        }
        argv = NULL;
    }
    return argv != NULL ? argv : json_object_get(app->set.images, "*");
}

/* The digest of a tag; "" when there is none. */
static void look_up(const struct request *r, const char *repository, const char *tag,
                    char ret[static SHA256_HEX_N])
{
    const char *registry = json_string_value(json_object_get(r->input, "registryId"));
    const struct local_settings *set = &r->app->set;
    AUTO_FREE char *name =
        xasprintf("%s.dkr.ecr.%s.amazonaws.com/%s", registry != NULL ? registry : set->account,
                  set->region, repository);
    AUTO_FREE char *tagged = xasprintf("%s:%s", name, tag);
    bool bare = strcmp(tag, "latest") == 0 && json_object_get(set->images, tagged) == NULL &&
                json_object_get(set->images, name) != NULL;
    const char *uri = bare ? name : tagged;
    const json_t *argv = json_object_get(set->images, uri);
    argv = argv != NULL ? argv : json_object_get(set->images, "*");
    ret[0] = '\0';
    if (argv != NULL) {
        digest_of(uri, argv, ret);
    }
}

/* The same of a digest: it has to be there. */
static void look_for(const struct request *r, const char *repository, const char *digest,
                     char ret[static SHA256_HEX_N])
{
    const char *registry = json_string_value(json_object_get(r->input, "registryId"));
    const struct local_settings *set = &r->app->set;
    AUTO_FREE char *image =
        xasprintf("%s.dkr.ecr.%s.amazonaws.com/%s@%s", registry != NULL ? registry : set->account,
                  set->region, repository, digest);
    ret[0] = '\0';
    if (ecr_image_argv(r->app, image) != NULL && strlen(digest) == strlen("sha256:") + 64) {
        (void)snprintf(ret, SHA256_HEX_N, "%s", digest + strlen("sha256:"));
    }
}

static json_t *found(const char *repository, const char *tag, const char *digest)
{
    AUTO_FREE char *whole = xasprintf("sha256:%s", digest);
    return json_pack("{s:s, s:{s:s, s:s*}, s:s}", "repositoryName", repository, "imageId",
                     "imageDigest", whole, "imageTag", tag, "imageManifest", "{}");
}

void ecr_batch_get_image(struct request *r)
{
    const char *repository = json_string_value(json_object_get(r->input, "repositoryName"));
    const json_t *ids = json_object_get(r->input, "imageIds");
    json_t *images = json_array(), *failures = json_array();
    size_t i;
    const json_t *id;
    if (repository == NULL || strlen(repository) < 2 || !json_is_array(ids) ||
        json_array_size(ids) == 0 || json_array_size(ids) > IMAGES_ASKED_MAX) {
        json_decref(images);
        json_decref(failures);
        reply_error(r, 400, "InvalidParameterException",
                    "Invalid parameter at 'repositoryName' or 'imageIds'");
        return;
    }
    json_array_foreach(ids, i, id)
    {
        const char *tag = json_string_value(json_object_get(id, "imageTag"));
        const char *wanted = json_string_value(json_object_get(id, "imageDigest"));
        char digest[SHA256_HEX_N] = "";
        if (tag != NULL) {
            look_up(r, repository, tag, digest);
        } else if (wanted != NULL) {
            look_for(r, repository, wanted, digest);
        }
        if (digest[0] != '\0') {
            (void)json_array_append_new(images, found(repository, tag, digest));
        } else {
            (void)json_array_append_new(
                failures, json_pack("{s:O, s:s, s:s}", "imageId", id, "failureCode",
                                    "ImageNotFound", "failureReason", "Requested image not found"));
        }
    }
    reply_json(r, json_pack("{s:o, s:o}", "images", images, "failures", failures));
}
