/* See images.h. */
#include "images.h"
#include "common/cleanup.h"
#include "common/json.h"
#include <stdio.h>

struct image_call {
    image_digest_cb cb;
    void *ctx;
};

static bool digest_ok(const char *s)
{
    return s != NULL && strlen(s) == IMAGE_DIGEST_N - 1 && strncmp(s, "sha256:", 7) == 0 &&
           strspn(s + 7, "0123456789abcdef") == IMAGE_DIGEST_N - 8;
}

static bool is_not_there(const char *code)
{
    return strcmp(code, "ImageNotFound") == 0 || strcmp(code, "RepositoryNotFoundException") == 0 ||
           strcmp(code, "ImageNotFoundException") == 0;
}

static void on_images(void *ctx, const json_t *o, const struct aws_failure *f)
{
    AUTO_FREE struct image_call *call = ctx;
    struct aws_failure why = {.outcome = AWS_UNKNOWN, .message = "an answer without a digest"};
    if (f != NULL) {
        bool none = is_not_there(f->code);
        call->cb(call->ctx, NULL, none ? NULL : f);
        return;
    }
    const json_t *image = json_array_get(json_object_get(o, "images"), 0);
    const json_t *failure = json_array_get(json_object_get(o, "failures"), 0);
    const char *digest =
        json_string_value(json_object_get(json_object_get(image, "imageId"), "imageDigest"));
    if (digest_ok(digest)) {
        call->cb(call->ctx, digest, NULL);
        return;
    }
    json_call_text(failure, "failureCode", why.code, sizeof why.code);
    if (failure != NULL) {
        why.outcome = AWS_REFUSED;
        json_call_text(failure, "failureReason", why.message, sizeof why.message);
    }
    call->cb(call->ctx, NULL, is_not_there(why.code) ? NULL : &why);
}

void image_digest(struct aws_client *c, const char *registry, const char *repository,
                  const char *tag, image_digest_cb cb, void *ctx)
{
    static const char *const types[] = {"application/vnd.docker.distribution.manifest.v2+json",
                                        "application/vnd.docker.distribution.manifest.list.v2+json",
                                        "application/vnd.oci.image.manifest.v1+json",
                                        "application/vnd.oci.image.index.v1+json"};
    AUTO_BUF struct buf body = BUF_INIT(AWS_REQUEST_BYTES_MAX);
    struct image_call *call = xcalloc(1, sizeof *call);
    struct json_out w;
    *call = (struct image_call){cb, ctx};
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "registryId", registry);
    json_out_str(&w, "repositoryName", repository);
    json_out_array(&w, "imageIds");
    json_out_object(&w, NULL);
    json_out_str(&w, strncmp(tag, "sha256:", 7) == 0 ? "imageDigest" : "imageTag", tag);
    json_out_end_object(&w);
    json_out_end_array(&w);
    json_out_array(&w, "acceptedMediaTypes");
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        json_out_str(&w, NULL, types[i]);
    }
    json_out_end_array(&w);
    json_out_end_object(&w);
    (void)json_call_send(c, (struct aws_gate){NULL, NULL}, AWS_OP_BatchGetImage, buf_str(&body),
                         on_images, call);
}
