/* The judgement. Hosts that never answered do not count alone: at the end of a part all rows left
 * may belong to dead hosts. */
#include "network_watch.h"

bool network_look(struct network_watch *w, const struct network_census *c, bool rows_left,
                  int64_t now_us)
{
    if (w->away_us != 0) {
        return false;
    }
    bool most = c->known >= NETWORK_HOSTS_MIN && c->known > NETWORK_SHARE * c->heard;
    bool all = c->heard == 0 && c->refused == 0 && rows_left &&
               c->known + c->unknown >= NETWORK_UNKNOWN_MIN;
    if (most || all) {
        w->unanswered = !most;
        w->away_us = now_us;
        w->probe_us = now_us;
    }
    return w->away_us != 0;
}

bool network_hear(struct network_watch *w, bool back)
{
    if (w->away_us == 0 || !back) {
        return false; /* up, or it is one of the few that answer all the time */
    }
    w->away_us = 0;
    return true;
}

bool network_refuse(struct network_watch *w)
{
    if (w->away_us == 0 || !w->unanswered) {
        return false;
    }
    w->away_us = 0;
    return true;
}

bool network_may_ask(struct network_watch *w, int64_t now_us)
{
    if (w->away_us == 0) {
        return true;
    }
    if (now_us < w->probe_us) {
        return false;
    }
    w->probe_us = now_us + NETWORK_PROBE_US;
    return true;
}
