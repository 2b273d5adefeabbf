/* See endpoint_list.h. */
#include "endpoint_list.h"
#include "budget_state.h"
#include "core/capacity/endpoint_report.h"
#include "endpoint_served.h"
#include "parking.h"
#include <stdlib.h>

struct live_endpoint *leader_endpoint(const struct leader_state *s, int64_t endpoint_id)
{
    for (size_t i = 0; i < s->endpoints_n; i++) {
        if (s->endpoints[i]->row.id == endpoint_id) {
            return s->endpoints[i];
        }
    }
    return NULL;
}

static struct live_endpoint *add(struct leader_state *s, const struct endpoint_row *row)
{
    struct live_endpoint *e = xcalloc(1, sizeof *e);
    e->row = *row;
    e->payloads_n = -1;
    bool ended = endpoint_state_terminal(row->state);
    e->account = (struct ledger_account_of_attempt){
        .reserved_musd = ended ? 0 : row->reserved_musd, .reserved = true, .closed = ended};
    s->endpoints = xrealloc(s->endpoints, (s->endpoints_n + 1) * sizeof(struct live_endpoint *));
    s->endpoints[s->endpoints_n++] = e;
    s->act = true;
    return e;
}

bool leader_take_endpoints(struct leader_state *s, const struct endpoint_row *rows, size_t n,
                           int64_t boot_us)
{
    bool asked = false;
    for (size_t i = 0; i < n; i++) {
        struct live_endpoint *e = leader_endpoint(s, rows[i].id);
        if (e == NULL) {
            e = add(s, &rows[i]);
            e->signed_us = MAX(1, boot_us); /* a Create of an earlier leader, perhaps */
            e->unsure = e->row.made < HOSTING_KIND_COUNT;
            e->found = e->row.state == ENDPOINT_DELETING && endpoint_served_guessed(&e->row);
            continue;
        }
        if (rows[i].delete_asked && !e->row.delete_asked) {
            e->row.delete_asked = asked = s->act = true;
        }
        if (rows[i].extend_us != e->row.extend_us) {
            e->row.extend_us = rows[i].extend_us;
            asked = s->act = true;
        }
    }
    return asked;
}

void leader_endpoint_money(struct leader_state *s, const struct endpoint_row *r,
                           musd_t reserved_musd, musd_t spent_musd)
{
    budget_state_move_of(s, r->project_id, r->campaign_id, r->stage_id, reserved_musd, spent_musd);
}

struct live_endpoint *leader_apply_endpoint_intent(struct leader_state *s,
                                                   const struct endpoint_row *row)
{
    struct live_endpoint *e = add(s, row);
    leader_endpoint_money(s, row, row->reserved_musd, 0);
    return e;
}

void leader_endpoints_forget(struct leader_state *s)
{
    for (size_t i = s->endpoints_n; i-- > 0;) {
        struct live_endpoint *e = s->endpoints[i];
        if (e->io == NULL && endpoint_state_terminal(e->row.state) &&
            !parking_stage_open(s, e->row.campaign_id, e->row.stage_id)) {
            s->endpoints[i] = s->endpoints[--s->endpoints_n];
            free(e);
        }
    }
}
