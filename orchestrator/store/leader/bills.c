/* See bills.h. */
#include "bills.h"
#include "queries.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"

static void read_row(const PGresult *r, int i, struct bill_row *ret)
{
    struct row_array phases = row_array(r, i, 10);
    *ret = (struct bill_row){.attempt_id = row_i64(r, i, 0),
                             .campaign_id = row_i64(r, i, 1),
                             .project_id = row_i64(r, i, 2),
                             .stage_id = row_i64(r, i, 3),
                             .task_id = row_i64(r, i, 4),
                             .instances = row_int(r, i, 6),
                             .price_musd_per_hour = row_i64(r, i, 7),
                             .billable_s = row_i64(r, i, 8),
                             .cost_musd = row_i64(r, i, 9),
                             .has_phases = phases.n == PHASE_FIGURES_N};
    row_text_into(r, i, 5, ret->job.s, sizeof ret->job.s);
    for (size_t k = 0; ret->has_phases && k < PHASE_FIGURES_N; k++) {
        ret->phases[k] = row_array_i64(&phases, k);
    }
}

bool view_bills(struct store *s, struct bill_row **ret, size_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, BILLS_MAX);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_BILLS), &p, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    struct bill_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        read_row(r, (int)i, &rows[i]);
    }
    *ret = rows;
    *ret_n = n;
    return true;
}

static bool corrected(struct store *s, const char *name, const char *sql, struct params *p,
                      bool *ret_done, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, name, sql, p, &r, err)) {
        return false;
    }
    *ret_done = row_i64(r, 0, 0) == 1;
    return true;
}

static bool correct_stray(struct store *s, const struct bill_correction *c, bool *ret_done,
                          struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, c->job.s);
    param_i64(&p, c->was_billable_s);
    param_i64(&p, c->was_musd);
    param_i64(&p, c->billable_s);
    param_i64(&p, c->cost_musd);
    param_text(&p, ledger_account_name(c->entry.from));
    param_text(&p, ledger_account_name(c->entry.to));
    param_i64(&p, c->entry.amount_musd);
    param_i64(&p, c->entry.seconds);
    return corrected(s, QUERY(STRAY_BILL_CORRECT), &p, ret_done, err);
}

bool store_bill_correct(struct store *s, const struct bill_correction *c, bool *ret_done,
                        struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    if (c->attempt_id == 0) {
        return correct_stray(s, c, ret_done, err);
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(PARAM(&p, BILL_CORRECT, ATTEMPT), c->attempt_id);
    param_i64(PARAM(&p, BILL_CORRECT, WAS_S), c->was_billable_s);
    param_i64(PARAM(&p, BILL_CORRECT, WAS), c->was_musd);
    param_i64(PARAM(&p, BILL_CORRECT, BILLABLE_S), c->billable_s);
    param_i64(PARAM(&p, BILL_CORRECT, COST), c->cost_musd);
    param_text(PARAM(&p, BILL_CORRECT, FROM_ACCOUNT), ledger_account_name(c->entry.from));
    param_text(PARAM(&p, BILL_CORRECT, TO_ACCOUNT), ledger_account_name(c->entry.to));
    param_i64(PARAM(&p, BILL_CORRECT, AMOUNT), c->entry.amount_musd);
    param_i64(PARAM(&p, BILL_CORRECT, SECONDS), c->entry.seconds);
    param_i64_array(PARAM(&p, BILL_CORRECT, PHASES), c->phases,
                    c->has_phases ? PHASE_FIGURES_N : 0);
    param_json(PARAM(&p, BILL_CORRECT, RULES), c->rules);
    return corrected(s, QUERY(BILL_CORRECT), &p, ret_done, err);
}

bool store_bill_give_up(struct store *s, const struct bill_row *row, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    if (row->attempt_id == 0) {
        param_text(&p, row->job.s);
        return store_run(s, QUERY(STRAY_BILL_GIVE_UP), &p, NULL, err);
    }
    param_i64(&p, row->attempt_id);
    return store_run(s, QUERY(BILL_GIVE_UP), &p, NULL, err);
}
