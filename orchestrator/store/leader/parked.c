/* What is set aside: the rows that people see and may delete. */
#include "parked.h"
#include "queries.h"
#include "reason.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"

bool view_parked(struct store *s, struct parked_row **ret, size_t *ret_n, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_PARKED), NULL, &r, err)) {
        return false;
    }
    struct parked_row *rows = xcalloc((size_t)row_count(r) + 1, sizeof *rows);
    size_t n = 0;
    for (int i = 0; i < row_count(r); i++) {
        rows[n] = (struct parked_row){.kind = parked_kind_parse(row_text(r, i, 0)),
                                      .ref_id = row_i64(r, i, 1),
                                      .campaign_id = row_i64(r, i, 2)};
        n += rows[n].kind != PARKED_KIND_COUNT; /* a kind of a newer droverd is not ours to try */
    }
    *ret = rows;
    *ret_n = n;
    return true;
}

bool store_park(struct store *s, const struct parked_row *row, const char *reason,
                const char *alert, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, parked_kind_name(row->kind));
    param_i64(&p, row->ref_id);
    param_i64(&p, row->campaign_id);
    param_outside_text(&p, reason, REASON_CHARS_MAX);
    param_outside_text(&p, alert, REASON_CHARS_MAX);
    s->events = true;
    return store_run(s, QUERY(PARK), &p, NULL, err);
}

bool store_unpark(struct store *s, enum parked_kind kind, int64_t ref_id, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, parked_kind_name(kind));
    param_i64(&p, ref_id);
    return store_run(s, QUERY(UNPARK), &p, NULL, err);
}
