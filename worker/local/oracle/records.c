/* See records.h. */
#include "records.h"
#include "common/log.h"
#include "local/app.h"

json_t *record_find(const struct app *app, enum record_kind kind, const char *name)
{
    return name == NULL ? NULL : json_object_get(app->records.all[kind], name);
}

static bool record_write(struct app *app, enum record_kind kind, const char *name,
                         const struct request *r)
{
    struct err err = ERR_INIT;
    if (journal_write_record(&app->state, record_kind_name(kind), name,
                             record_find(app, kind, name), r, &err)) {
        return true;
    }
    log_event(LOG_ERROR, "journal_failed", LF_S("record", name), LF_ERR(&err));
    return false;
}

bool record_add(struct app *app, enum record_kind kind, const char *name, json_t *take,
                struct request *r)
{
    ASSERT(record_find(app, kind, name) == NULL);
    bool room = json_object_size(app->records.all[kind]) < RECORDS_MAX;
    (void)json_object_set_new(app->records.all[kind], name, take);
    if (!room || !record_write(app, kind, name, r)) {
        (void)json_object_del(app->records.all[kind], name);
        if (r != NULL) {
            reply_error(r, 500, "InternalFailure", "no room for more resources");
        }
        return false;
    }
    if (r != NULL) {
        r->accepted = true;
        r->reply.sync = true;
    }
    return true;
}

void record_save(struct app *app, enum record_kind kind, const char *name)
{
    (void)record_write(app, kind, name, NULL);
}

void record_remove(struct app *app, enum record_kind kind, const char *name)
{
    AUTO_FREE char *copy = xstrdup(name); /* it may stand in the object */
    (void)json_object_del(app->records.all[kind], copy);
    (void)record_write(app, kind, copy, NULL);
}
