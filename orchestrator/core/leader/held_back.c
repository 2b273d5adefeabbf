/* See held_back.h. */
#include "held_back.h"
#include <stdio.h>

static const char words[] = "not made while its campaign does not run";

bool held_back(const struct live_campaign *lc)
{
    return lc == NULL || lc->row.wanted != WANTED_RUN || lc->row.state != CAMPAIGN_RUNNING;
}

bool held_back_say(const struct live_campaign *lc, char reason[static 512])
{
    bool said = strncmp(reason, words, sizeof words - 1) == 0;
    if (lc == NULL || said == held_back(lc)) {
        return false;
    }
    reason[0] = '\0';
    if (!said) {
        (void)snprintf(reason, 512, "%s: drover resume c-%lld", words, (long long)lc->row.id);
    }
    return true;
}
