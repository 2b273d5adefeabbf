/* See maintenance.h. */
#include "maintenance.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/maintenance.h"
#include "shell.h"
#include "store/leader/maintenance.h"
#include "wall.h"

/* The tables of days are made and dropped while the default partition is locked and read: it is
 * emptied of what is old first, a batch at a time. */
static bool events(struct store *s, int64_t *ret_n, struct err *err)
{
    return store_events_expire(s, MAINTENANCE_EVENTS, ret_n, err) &&
           (*ret_n == MAINTENANCE_EVENTS || store_events_maintain(s, err));
}

/* None of the three waits for another one that fails, for good maybe. */
static bool work(struct controller *c, struct store *s, struct maintenance_done *ret,
                 struct err *err)
{
    usec_t before_us;
    bool archives = leader_archive_before(leader_now(c), c->cfg.archive_after_days, &before_us);
    bool ok = events(s, &ret->events, err);
    ok &= store_keys_expire(s, MAINTENANCE_KEYS, &ret->keys, ok ? err : NULL);
    if (archives) {
        ok &=
            store_archive_due(s, before_us, MAINTENANCE_ARCHIVES, &ret->archives, ok ? err : NULL);
    }
    if (ret->archives > 0) {
        log_event(LOG_INFO, "archives_due", LF_I("campaigns", ret->archives));
    }
    return ok;
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
