/* See record_value.h. */
#include "record_value.h"

static const char *const kind_names[RECORD_KIND_COUNT] = {
    [RECORD_MODEL] = "model",
    [RECORD_ENDPOINT_CONFIG] = "endpoint_config",
    [RECORD_ENDPOINT] = "endpoint",
    [RECORD_FILE_SYSTEM] = "file_system",
    [RECORD_ASSOCIATION] = "association",
    [RECORD_FSX_TASK] = "fsx_task",
    [RECORD_INVOCATIONS] = "invocations",
    [RECORD_CHARGE] = "charge",
};

void records_init(struct records *s)
{
    for (int k = 0; k < RECORD_KIND_COUNT; k++) {
        s->all[k] = json_object();
    }
}

void records_done(struct records *s)
{
    for (int k = 0; k < RECORD_KIND_COUNT; k++) {
        json_decref(s->all[k]);
        s->all[k] = NULL;
    }
}

const char *record_kind_name(enum record_kind kind)
{
    return kind_names[kind];
}

bool record_replay(struct records *s, const json_t *line, struct err *err)
{
    const char *kind = record_text(line, "kind");
    const char *name = record_text(line, "name");
    json_t *value = json_object_get(line, "value");
    for (int k = 0; k < RECORD_KIND_COUNT; k++) {
        if (strcmp(kind_names[k], kind) != 0) {
            continue;
        }
        if (json_is_object(value)) {
            (void)json_object_set(s->all[k], name, value);
        } else {
            (void)json_object_del(s->all[k], name);
        }
        return true;
    }
    return err_set(err, ERR_MALFORMED, "journal: unknown record '%s'", kind);
}

const char *record_text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s == NULL ? "" : s;
}

int64_t record_i64(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

void record_set_text(json_t *o, const char *key, const char *value)
{
    (void)json_object_set_new(o, key, json_string(value));
}

void record_set_i64(json_t *o, const char *key, int64_t value)
{
    (void)json_object_set_new(o, key, json_integer(value));
}

json_t *record_epoch(int64_t at_us)
{
    return json_real((double)at_us / (double)USEC_PER_SEC);
}
