/* What tests of the leader's store share: a fresh database with a campaign of PARTS parts, led. The
 * file that includes it says how many PARTS there are. */
#pragma once
#include "store/leader/lease.h"
#include "tests/kit/pg_fixture.h"

struct world {
    char db[600];
    struct store *s;
    int64_t epoch;
    struct pg_campaign c;
};

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    pg_fixture_database(w->db, sizeof w->db);
    w->c = pg_campaign_make(w->db, PARTS);
    w->s = pg_leader(w->db, &w->epoch);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    store_close(w->s);
    free(w);
    return 0;
}

UNUSED static void begin(struct world *w)
{
    struct err err = ERR_INIT;
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
}

UNUSED static void commit(struct world *w)
{
    struct err err = ERR_INIT;
    pg_good(leader_commit(w->s, &err), &err);
    pg_check_counters(w->db);
}
