/* The judgement itself. Hosts that never answered do not count by themselves: at the end of a part
 * all that is left may be rows of dead hosts. */
#include "network_watch.h"

void network_look(struct network_watch *w, const struct network_census *c, bool rows_left,
                  int64_t now_us)
{
    if (w->away_us != 0) {
        return;
    }
    bool most = c->known >= NETWORK_HOSTS_MIN && c->known > NETWORK_SHARE * c->heard;
    bool all = c->heard == 0 && rows_left && c->known + c->unknown >= NETWORK_UNKNOWN_MIN;
    if (most || all) {
        w->away_us = now_us;
        w->probe_us = now_us;
    }
}

bool network_hear(struct network_watch *w, bool anew)
{
    if (w->away_us == 0 || !anew) {
        return false; /* there, or one of the few that answer all the while */
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
