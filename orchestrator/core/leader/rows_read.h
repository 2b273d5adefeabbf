/* What rows mean when the leader reads them: which campaigns have moved, which of their columns are
 * people's and which are as memory has them, which parts are taken in and in which queue each
 * waits. Pure. */
#pragma once
#include "core/sched/ready_queue.h"
#include "leader_state.h"

/* The waiting tasks of a stage that has ended are not read. A retry may reopen a skipped stage. */
bool rows_stage_is_read(const struct live_stage *ls);
/* A stage of a campaign that enters memory, whose spec is known; its queues are made. row may be
 * that of ls itself. */
void rows_new_stage(struct live_campaign *lc, struct live_stage *ls, const struct stage_row *row);
/* A campaign that enters memory, after its stages. */
void rows_new_campaign(struct live_campaign *lc);
/* True when each stage that has rows is one of the spec and the other way round, by name: a
 * stage without its part of the spec would have no needs, no gate and no end. Else *err says why,
 * and the spec counts as unreadable. */
bool rows_fit_spec(const struct spec *spec, const struct stage_row *rows, size_t n,
                   struct err *err) MUST_CHECK;
/* The names of a campaign's stages as their rows have them now, before its spec is set again. */
void rows_name_stages(struct live_campaign *lc, const struct stage_row *rows, size_t n);
/* The spec of a campaign in memory was read again. NULL: it cannot be read; its jobs are looked
 * after and nothing starts. */
void rows_set_spec(struct live_campaign *lc, struct spec *spec);

/* Parts enter the counters as `tasks` of the row says now; they are never fewer. */
bool rows_new_parts(const struct live_stage *ls, int64_t tasks);
void rows_take_parts(struct live_stage *ls, int64_t tasks);
/* True when parts are counted that no queue has yet. */
bool rows_unloaded(const struct live_stage *ls);
/* All parts of a stage that wait were read, `n` of them. True when that is as many as its counters
 * say; else *err says why, since a missing one would be waited for and nobody told. */
bool rows_parts_fit(const struct live_stage *ls, size_t n, struct err *err) MUST_CHECK;
enum rows_queue { ROWS_NO_QUEUE, ROWS_READY, ROWS_UNCHECKED, ROWS_HELD };
/* Where a task waits; *ret is its entry: it backs off no longer than any failure of its stage may
 * make it, whatever its row says. ROWS_NO_QUEUE: it does not wait. now_us: wall. */
enum rows_queue rows_task(const struct live_stage *ls, const struct task_row *row, usec_t now_us,
                          struct ready_queue_task *ret);
/* A part waits again: it enters its queue, or stays out of it while its row is still to be read,
 * which is done at the next look. */
void rows_part_waits(struct live_campaign *lc, struct live_stage *ls,
                     const struct ready_queue_task *t);

/* People want something else of it than when it was looked at last; a parked one is tried at once.
 * Notes the version as looked at. */
bool rows_new_wish(struct live_campaign *lc, const struct campaign_version *v);
/* True when it is to be read. lc NULL: it is not in memory. */
bool rows_moved(const struct live_campaign *lc, const struct campaign_version *v);
enum rows_look {
    ROWS_LEAVE,
    ROWS_TAKE,   /* it is not in memory: its rows are read whole */
    ROWS_REFRESH /* its wishes and new parts are read */
};
/* What is read of a campaign whose version is now v. A new wish has a parked one tried at once.
 * Asks for a plan when something is read. */
enum rows_look rows_look(struct leader_state *s, const struct campaign_version *v, int64_t boot_us);
/* `loaded`: its wishes and its new parts were read, else they are read at the next look. */
void rows_refreshed(struct live_campaign *lc, const struct campaign_version *v, bool loaded);
/* Nothing that a look wanted to read of it is missing. */
bool rows_fresh(const struct live_campaign *lc);
/* True when the spec that could not be read is to be tried again; not before its parts are read. */
bool rows_spec_due(const struct leader_state *s, const struct live_campaign *lc, int64_t boot_us);
/* It was tried: with lc->spec (NULL: it cannot be read) the stages' histories were read again, and
 * their breakers count the attempts under way again. taken: its transaction. True: the campaign
 * goes on, and its parts are read again at the next look; else it stays without a spec. */
bool rows_spec_read(struct leader_state *s, struct live_campaign *lc, bool taken);
/* True when the stage of an attempt is one of its campaign; else *err says why. */
bool rows_attempt_placed(struct live_campaign *lc, const struct attempt_row *row,
                         struct err *err) MUST_CHECK;
/* Its queues are not what its rows say, or are not known to be: they are read again at the next
 * look. */
void rows_queue_anew(struct live_campaign *lc);
/* What people want of it may have changed. Columns that only the leader writes stay as they are. */
void rows_refresh_campaign(struct live_campaign *lc, const struct campaign_row *now);
void rows_refresh_stage(struct live_stage *ls, const struct stage_row *now);

/* Limits, weights and caps above campaigns; a cap that moved may let a campaign go on. n > 0: there
 * is always a row of everything together. */
void rows_refresh_projects(struct leader_state *s, const struct project_row *rows, size_t n);
bool rows_project_known(const struct leader_state *s, int64_t project_id);
/* What people let us use of each quota. A type without a row has no such limit. */
void rows_slot_limits(struct leader_state *s, const struct slot_limit_row *rows, size_t n);
/* At takeover; quotas are read before anything is intended. now_us: wall. */
void rows_slots(struct leader_state *s, const struct slots_row *rows, size_t n, usec_t now_us);
/* Instants of a row that cannot be, after 2100 or before its intent, become that of its intent:
 * what is decided and billed by them would never end, or begin before it was there. One that is
 * only ahead of this clock stays: it may be days behind AWS', by which they are. */
void rows_endpoint_times(struct endpoint_row *r, usec_t now_us);
void rows_filesystem_times(struct filesystem_row *r, usec_t now_us);
/* Whether anything that is written to its row has changed. */
bool rows_filesystem_differ(const struct filesystem_row *a, const struct filesystem_row *b);
void rows_prices(struct leader_state *s, const struct slots_row *rows, size_t n);
