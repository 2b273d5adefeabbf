/* See request_parts.h. */
#include "request_parts.h"
#include "core/spec/spec_read.h"
#include <stdio.h>

bool request_expand(const struct training_request_input *in, const char *what, const char *template,
                    size_t max, char **ret, struct err *err)
{
    AUTO_BUF struct buf out = BUF_INIT(SPEC_STRING_MAX);
    struct err why = ERR_INIT;
    if (!spec_expand(template, in->task, &out, &why)) {
        return err_set(err, ERR_INVALID, "%s: %s", what, why.message);
    }
    if (out.n > max) {
        return err_set(err, ERR_INVALID, "%s is %zu bytes long; CreateTrainingJob takes %zu", what,
                       out.n, max);
    }
    *ret = xstrdup(buf_cstr(&out));
    return true;
}

void request_texts(struct json_out *w, const char *key, const char *const *s, int n)
{
    json_out_array(w, key);
    for (int i = 0; i < n; i++) {
        json_out_str(w, NULL, s[i]);
    }
    json_out_end_array(w);
}

void request_map(struct json_out *w, const char *key, const struct map_entry *e, int n)
{
    json_out_object(w, key);
    for (int i = 0; i < n; i++) {
        json_out_str(w, e[i].key, e[i].value);
    }
    json_out_end_object(w);
}

static int entry_cmp(const void *a, const void *b)
{
    return strcmp(((const struct map_entry *)a)->key, ((const struct map_entry *)b)->key);
}

void request_map_sort(struct map_entry *e, int n)
{
    qsort(e, (size_t)n, sizeof *e, entry_cmp);
}

void request_vpc(struct json_out *w, const struct spec_stage *stage, const char *subnet)
{
    if (stage->subnets_n > 0) {
        json_out_object(w, "VpcConfig");
        request_texts(w, "SecurityGroupIds", stage->security_groups, stage->security_groups_n);
        request_texts(w, "Subnets", subnet != NULL ? &subnet : stage->subnets,
                      subnet != NULL ? 1 : stage->subnets_n);
        json_out_end_object(w);
    }
}

static void write_tag(struct json_out *w, const char *key, const char *value)
{
    json_out_object(w, NULL);
    json_out_str(w, "Key", key);
    json_out_str(w, "Value", value);
    json_out_end_object(w);
}

static void write_number_tag(struct json_out *w, const char *key, int64_t value)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%lld", (long long)value);
    write_tag(w, key, number);
}

/* A tag of the stage takes the place of the campaign's of that key. */
static bool has_tag(const struct request_tags *t, const char *key)
{
    for (int i = 0; i < t->own_n; i++) {
        if (strcmp(t->own[i].key, key) == 0) {
            return true;
        }
    }
    return false;
}

void request_tags(struct json_out *w, const struct request_tags *t)
{
    json_out_array(w, "Tags");
    write_tag(w, "drover-install", t->install_id);
    write_number_tag(w, "drover-campaign", t->campaign_id);
    write_tag(w, "drover-stage", t->stage);
    write_number_tag(w, "drover-part", t->part);
    write_number_tag(w, "drover-attempt", t->attempt_id);
    for (int i = 0; i < t->own_n; i++) {
        write_tag(w, t->own[i].key, t->own[i].value);
    }
    for (int i = 0; i < t->spec->tags_n; i++) {
        if (!has_tag(t, t->spec->tags[i].key)) {
            write_tag(w, t->spec->tags[i].key, t->spec->tags[i].value);
        }
    }
    json_out_end_array(w);
}
