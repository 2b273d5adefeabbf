/* The simulated store: tables of rows, atomic transactions that check the lease, commits whose
 * outcome stays unknown, and failovers that lose the last commits. The old bytes of each written
 * row are kept, so that a transaction or the last commits can be undone. */
#include "sim_world.h"

#define COMMITS_KEPT 64

static const size_t row_sizes[TABLES] = {
    [T_CAMPAIGN] = sizeof(struct db_campaign),
    [T_STAGE] = sizeof(struct db_stage),
    [T_TASK] = sizeof(struct db_task),
    [T_ATTEMPT] = sizeof(struct db_attempt),
    [T_LEDGER] = sizeof(struct ledger_entry),
    [T_SLOTS] = sizeof(struct db_slots),
    [T_PROJECT] = sizeof(struct budget),
    [T_GLOBAL] = sizeof(struct budget),
    [T_OP] = sizeof(struct db_op),
    [T_LEASE] = sizeof(struct db_lease),
};

void db_init(struct world *w)
{
    struct db *d = &w->db;
    for (int t = 0; t < TABLES; t++) {
        d->t[t].row = row_sizes[t];
    }
    d->lock_by = -1;
    d->keeps_history = w->cfg.strength[FAULT_FAILOVER] > 0;
}

void db_done(struct world *w)
{
    struct db *d = &w->db;
    for (int t = 0; t < TABLES; t++) {
        free(d->t[t].rows);
    }
    free(d->undo);
    free(d->bytes);
    free(d->commits);
}

static struct db_undo *undo_push(struct db *d, enum table t, size_t i)
{
    if (d->undo_n == d->undo_cap) {
        d->undo_cap = MAX(256, d->undo_cap * 2);
        d->undo = xrealloc(d->undo, d->undo_cap * sizeof *d->undo);
    }
    struct db_undo *u = &d->undo[d->undo_n++];
    *u = (struct db_undo){.table = (uint8_t)t, .index = (uint32_t)i, .at = d->bytes_n};
    return u;
}

void *db_touch(struct world *w, enum table t, size_t i)
{
    struct db *d = &w->db;
    void *row = db_row(w, t, i);
    size_t n = d->t[t].row;
    ASSERT(d->in_tx);
    (void)undo_push(d, t, i);
    if (d->bytes_n + n > d->bytes_cap) {
        d->bytes_cap = MAX(65536, (d->bytes_n + n) * 2);
        d->bytes = xrealloc(d->bytes, d->bytes_cap);
    }
    memcpy(d->bytes + d->bytes_n, row, n);
    d->bytes_n += n;
    return row;
}

size_t db_add(struct world *w, enum table t)
{
    struct db *d = &w->db;
    struct db_table *tab = &d->t[t];
    ASSERT(d->in_tx);
    if (tab->n == tab->cap) {
        tab->cap = MAX(64, tab->cap * 2);
        tab->rows = xrealloc(tab->rows, tab->cap * tab->row);
    }
    undo_push(d, t, tab->n)->grew = true;
    memset(tab->rows + tab->n * tab->row, 0, tab->row);
    return tab->n++;
}

/* Undoes everything written since undo entry `to`. */
static void take_back(struct world *w, size_t to, bool committed)
{
    struct db *d = &w->db;
    while (d->undo_n > to) {
        const struct db_undo *u = &d->undo[--d->undo_n];
        struct db_table *tab = &d->t[u->table];
        if (u->grew) {
            if (committed && u->table == T_ATTEMPT) {
                judge_lost(w, (int)u->index);
            }
            ASSERT(tab->n == u->index + 1U);
            tab->n--;
        } else {
            memcpy(tab->rows + u->index * tab->row, d->bytes + u->at, tab->row);
        }
        d->bytes_n = u->at;
    }
}

static void begin(struct world *w)
{
    ASSERT(!w->db.in_tx);
    w->db.in_tx = true;
    w->db.began = w->db.undo_n;
}

void db_abort(struct world *w)
{
    ASSERT(w->db.in_tx);
    take_back(w, w->db.began, false);
    w->db.in_tx = false;
}

/* Commits that are no longer kept have reached every replica. */
static void forget(struct db *d, size_t n)
{
    if (n == 0) {
        return;
    }
    if (n == d->commits_n) { /* nothing is kept */
        d->undo_n = d->bytes_n = d->commits_n = 0;
        return;
    }
    size_t upto = d->commits[n];
    size_t bytes = upto == d->undo_n ? d->bytes_n : d->undo[upto].at;
    memmove(d->undo, d->undo + upto, (d->undo_n - upto) * sizeof *d->undo);
    memmove(d->bytes, d->bytes + bytes, d->bytes_n - bytes);
    d->undo_n -= upto;
    d->bytes_n -= bytes;
    for (size_t i = 0; i < d->undo_n; i++) {
        d->undo[i].at -= bytes;
    }
    memmove(d->commits, d->commits + n, (d->commits_n - n) * sizeof *d->commits);
    d->commits_n -= n;
    for (size_t i = 0; i < d->commits_n; i++) {
        d->commits[i] -= upto;
    }
}

static void apply(struct world *w, bool keep)
{
    struct db *d = &w->db;
    for (size_t i = d->began; i < d->undo_n; i++) {
        if (d->undo[i].grew && d->undo[i].table == T_ATTEMPT) {
            judge_committed(w, (int)d->undo[i].index);
        }
    }
    d->in_tx = false;
    d->committed++;
    if (d->commits_n == d->commits_cap) {
        d->commits_cap = MAX(128, d->commits_cap * 2);
        d->commits = xrealloc(d->commits, d->commits_cap * sizeof *d->commits);
    }
    d->commits[d->commits_n++] = d->began;
    if (!keep || !d->keeps_history) {
        forget(d, d->commits_n);
    } else if (d->commits_n == 2 * COMMITS_KEPT) {
        forget(d, COMMITS_KEPT);
    }
}

bool db_reachable(const struct world *w, const struct ctl *c)
{
    return !fault_open(w, FAULT_STORE_DOWN) && !c->cut_store;
}

/* The leader freezes between checking the lease and this transaction, for longer than the lease
 * lasts: when it goes on, another leads. */
static void overtake(struct world *w, const struct ctl *c)
{
    struct ctl *o = &w->ctl[(c->id + 1) % w->cfg.ctls];
    if (o->up && !o->frozen && !o->leading && db_reachable(w, o)) {
        o->session = w->db.instance;
        lead_take(w, o);
    }
}

bool db_begin(struct world *w, struct ctl *c)
{
    ASSERT(c->leading);
    const struct db_lease *l = db_row(w, T_LEASE, 0);
    if (w->cfg.ctls > 1 && fault(w, FAULT_OVERTAKEN)) {
        overtake(w, c);
    }
    if (!db_reachable(w, c) || c->session != w->db.instance) {
        ctl_lose(w, c, "the store is out of reach");
        return false;
    }
    if (l->epoch != c->epoch) {
        SOMETIMES(w, FENCED);
        ctl_lose(w, c, "another epoch leads");
        return false;
    }
    begin(w);
    return true;
}

bool db_commit(struct world *w, struct ctl *c)
{
    if (fault(w, FAULT_BACKEND_KILLED)) {
        db_abort(w);
        ctl_lose(w, c, "the backend was killed");
        return false;
    }
    if (fault(w, FAULT_COMMIT_UNKNOWN)) {
        bool applied = rng_chance(&w->rng_fault[FAULT_COMMIT_UNKNOWN], 0.5);
        if (applied) {
            SOMETIMES(w, COMMIT_UNKNOWN_APPLIED);
            apply(w, true);
        } else {
            SOMETIMES(w, COMMIT_UNKNOWN_LOST);
            db_abort(w);
        }
        ctl_lose(w, c, applied ? "commit unknown (it was applied)" : "commit unknown (it was not)");
        return false;
    }
    apply(w, true);
    if (fault(w, FAULT_CRASH_COMMIT)) {
        ctl_crash(w, c);
        return false;
    }
    return true;
}

void db_begin_api(struct world *w)
{
    begin(w);
}

/* What a person was told has reached every replica: an acknowledged request is never lost. */
void db_commit_api(struct world *w, bool acked)
{
    apply(w, !acked);
}

void db_failover(struct world *w)
{
    struct db *d = &w->db;
    struct rng *r = &w->rng_fault[FAULT_FAILOVER];
    size_t lose = (size_t)rng_below(r, MIN(d->commits_n, (size_t)40) + 1);
    if (lose > 0) {
        SOMETIMES(w, FAILOVER_LOST);
    }
    tell(w, -1, "the store fails over and loses its last %zu commits", lose);
    while (lose-- > 0) {
        take_back(w, d->commits[--d->commits_n], true);
    }
    forget(d, d->commits_n);
    d->instance++;
    d->timeline++;
    d->lock_by = -1;
    for (int i = 0; i < w->cfg.ctls; i++) {
        if (w->ctl[i].leading && !w->ctl[i].frozen) {
            ctl_lose(w, &w->ctl[i], "the store failed over");
        }
    }
}
