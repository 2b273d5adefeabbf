/* See filesystem_request.h. Source: Amazon FSx API reference, CreateFileSystem,
 * CreateDataRepositoryAssociation, CreateDataRepositoryTask. */
#include "filesystem_request.h"
#include "request_parts.h"
#include <stdio.h>

static void write_lustre(const struct spec_filesystem *f, struct json_out *w)
{
    json_out_object(w, "LustreConfiguration");
    json_out_str(w, "DeploymentType", f->deployment);
    if (f->throughput > 0) {
        json_out_i64(w, "PerUnitStorageThroughput", f->throughput);
    }
    json_out_end_object(w);
}

bool filesystem_request_make(const struct filesystem_request_input *in, struct buf *ret,
                             struct err *err)
{
    const struct spec_stage *s = in->stage;
    const struct spec_filesystem *f = s->filesystem;
    ASSERT(s->kind == SPEC_KIND_LUSTRE && f != NULL && s->subnets_n == 1 && in->campaign_id > 0);
    struct spec_pair own[SPEC_STAGE_TAGS_MAX + 1] = {{FILESYSTEM_TAG_TOKEN, in->token->s}};
    struct json_out w;
    if (strlen(in->install_id) > REQUEST_TAG_VALUE_MAX) {
        return err_set(err, ERR_INVALID, "the install id is too long for a tag");
    }
    if (in->spec->tags_n + f->tags_n > SPEC_FSX_TAGS_MAX) {
        return err_set(err, ERR_INVALID,
                       "stage '%s' and its campaign have more than %d tags, which is what FSx "
                       "takes besides drover's own",
                       s->name, SPEC_FSX_TAGS_MAX);
    }
    memcpy(own + 1, f->tags, (size_t)f->tags_n * sizeof own[0]);
    json_out_init(&w, ret);
    json_out_object(&w, NULL);
    json_out_str(&w, "ClientRequestToken", in->token->s);
    json_out_str(&w, "FileSystemType", "LUSTRE");
    json_out_str(&w, "FileSystemTypeVersion", FILESYSTEM_VERSION);
    json_out_i64(&w, "StorageCapacity", f->capacity_gib);
    json_out_str(&w, "StorageType", "SSD");
    request_texts(&w, "SubnetIds", s->subnets, 1);
    request_texts(&w, "SecurityGroupIds", s->security_groups, s->security_groups_n);
    if (s->volume_kms_key != NULL) {
        json_out_str(&w, "KmsKeyId", s->volume_kms_key);
    }
    write_lustre(f, &w);
    request_tags(&w, &(struct request_tags){.spec = in->spec,
                                            .install_id = in->install_id,
                                            .stage = s->name,
                                            .campaign_id = in->campaign_id,
                                            .attempt_id = in->attempt_id,
                                            .own = own,
                                            .own_n = f->tags_n + 1});
    json_out_end_object(&w);
    return !ret->overflow ||
           err_set(err, ERR_INVALID, "the request of '%s' is too long", in->token->s);
}

/* Of something that belongs to a file system: the end of its token has the hash. */
static void write_token(struct json_out *w, const char *token, const char *what, int n)
{
    char text[FILESYSTEM_TOKEN_SIZE];
    int head = snprintf(text, sizeof text, "%s%d-", what, n);
    size_t room = sizeof text - 1 - (size_t)head;
    size_t len = strlen(token);
    (void)snprintf(text + head, room + 1, "%s", len > room ? token + (len - room) : token);
    json_out_str(w, "ClientRequestToken", text);
}

void filesystem_request_link(const struct filesystem_request_of *of, const char *import_from,
                             struct buf *ret)
{
    static const char *const events[] = {"NEW", "CHANGED", "DELETED"};
    struct json_out w;
    json_out_init(&w, ret);
    json_out_object(&w, NULL);
    write_token(&w, of->token, "link", 1);
    json_out_str(&w, "FileSystemId", of->aws_id);
    json_out_str(&w, "FileSystemPath", FILESYSTEM_LINK_PATH);
    json_out_str(&w, "DataRepositoryPath", import_from);
    json_out_bool(&w, "BatchImportMetaDataOnCreate", true);
    json_out_object(&w, "S3");
    json_out_object(&w, "AutoImportPolicy");
    request_texts(&w, "Events", events, ARRAY_LEN(events));
    json_out_end_object(&w);
    json_out_end_object(&w);
    json_out_end_object(&w);
}

void filesystem_request_export(const struct filesystem_request_of *of, int n, struct buf *ret)
{
    struct json_out w;
    json_out_init(&w, ret);
    json_out_object(&w, NULL);
    write_token(&w, of->token, "export", n);
    json_out_str(&w, "FileSystemId", of->aws_id);
    json_out_str(&w, "Type", "EXPORT_TO_REPOSITORY");
    json_out_object(&w, "Report");
    json_out_bool(&w, "Enabled", false);
    json_out_end_object(&w);
    json_out_end_object(&w);
}
