/* See maintenance.h. */
#include "maintenance.h"
#include "common/clock.h"
#include "common/log.h"
#include "shell.h"
#include "store/leader/leader.h"
#include "store/leader/maintenance.h"

#define EVERY_US             (3600 * USEC_PER_SEC)
#define MAINTENANCE_AGAIN_US (60 * USEC_PER_SEC) /* after a failure: there are two days to try */
#define SOON_US              USEC_PER_SEC        /* there is more to do */
#define KEYS_BATCH           500
#define ARCHIVE_BATCH        100

/* *ret_more: as many as may be done at once; there may be more of them. */
static bool work(const struct controller *c, struct store *s, bool *ret_more, struct err *err)
{
    int64_t keys = 0, archives = 0;
    int64_t days = c->cfg.archive_after_days;
    if (!store_events_maintain(s, err) || !store_keys_expire(s, KEYS_BATCH, &keys, err) ||
        (days > 0 && !store_archive_due(s, clock_wall_us() - days * USEC_PER_DAY, ARCHIVE_BATCH,
                                        &archives, err))) {
        return false;
    }
    if (archives > 0) {
        log_event(LOG_INFO, "archives_due", LF_I("campaigns", archives));
    }
    *ret_more = keys == KEYS_BATCH || archives == ARCHIVE_BATCH;
    return true;
}

int64_t maintenance_run(struct controller *c)
{
    struct store *s = NULL;
    struct err err = ERR_INIT;
    bool more = false;
    if (!c->leading) {
        return EVERY_US;
    }
    bool ok = store_open(c->cfg.conninfo, STORE_MAINTENANCE, &s, &err) && work(c, s, &more, &err);
    if (!ok) {
        log_event(LOG_WARN, "maintenance_failed", LF_ERR(&err));
    }
    store_close(s);
    return !ok ? MAINTENANCE_AGAIN_US : more ? SOON_US : EVERY_US;
}
