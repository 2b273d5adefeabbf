/* Which file systems of FSx the leader knows: from their intent or their row until their stage has
 * ended, too. Pure. */
#pragma once
#include "leader_state.h"

/* At takeover, and again at any time: the rows that are open, or whose stage is. One that is known
 * takes from its row only what people may change. Money counts already. True: a person has asked
 * for something. */
bool leader_take_filesystems(struct leader_state *s, const struct filesystem_row *rows, size_t n,
                             int64_t boot_us);
/* One that was just intended: its money is reserved. */
struct live_filesystem *leader_apply_filesystem_intent(struct leader_state *s,
                                                       const struct filesystem_row *row);
/* NULL: there is none. */
struct live_filesystem *leader_filesystem(const struct leader_state *s, int64_t id);
/* Those that have ended are forgotten once their stage has, too. */
void leader_filesystems_forget(struct leader_state *s);
