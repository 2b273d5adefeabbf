/* See maintenance.h. */
#include "maintenance.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/maintenance.h"
#include "shell.h"
#include "store/leader/leader.h"
#include "store/leader/maintenance.h"
#include "wall.h"

static bool work(struct controller *c, struct store *s, struct maintenance_done *ret,
                 struct err *err)
{
    usec_t before_us;
    bool archives = leader_archive_before(leader_now(c), c->cfg.archive_after_days, &before_us);
    if (!store_events_maintain(s, err) ||
        !store_keys_expire(s, MAINTENANCE_KEYS, &ret->keys, err) ||
        (archives && !store_archive_due(s, before_us, MAINTENANCE_ARCHIVES, &ret->archives, err))) {
        return false;
    }
    if (ret->archives > 0) {
        log_event(LOG_INFO, "archives_due", LF_I("campaigns", ret->archives));
    }
    return true;
}

int64_t maintenance_run(struct controller *c)
{
    struct store *s = NULL;
    struct err err = ERR_INIT;
    struct maintenance_done done = {.keys = 0};
    if (!c->leading) {
        return leader_maintenance_again_us(NULL);
    }
    done.ok = store_open(c->cfg.conninfo, STORE_MAINTENANCE, &s, &err) && work(c, s, &done, &err);
    if (!done.ok && log_allow("maintenance_failed")) {
        log_event(LOG_WARN, "maintenance_failed", LF_ERR(&err));
    }
    store_close(s);
    return leader_maintenance_again_us(&done);
}
