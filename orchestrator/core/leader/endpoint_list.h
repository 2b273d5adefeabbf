/* Which endpoints the leader knows: from their intent or their row until their stage has ended,
 * too. Pure. */
#pragma once
#include "leader_state.h"

/* At takeover, and again at any time: the rows that are open, or whose stage is. One that is known
 * takes from its row only what people may change. Money counts already. True: a person has asked
 * for something. */
bool leader_take_endpoints(struct leader_state *s, const struct endpoint_row *rows, size_t n,
                           int64_t boot_us);
/* One that was just intended: its money is reserved. */
struct live_endpoint *leader_apply_endpoint_intent(struct leader_state *s,
                                                   const struct endpoint_row *row);
/* NULL: there is none. */
struct live_endpoint *leader_endpoint(const struct leader_state *s, int64_t endpoint_id);
/* Those that have ended are forgotten once their stage has, too. */
void leader_endpoints_forget(struct leader_state *s);
/* Money of it moves, at all levels. */
void leader_endpoint_money(struct leader_state *s, const struct endpoint_row *r,
                           musd_t reserved_musd, musd_t spent_musd);
