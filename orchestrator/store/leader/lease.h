/* The lease and the transactions of the leader, on one connection. Every write of a leader happens
 * between leader_begin and leader_commit. leader_begin locks the lease row FOR SHARE and fails with
 * ERR_NOT_LEADER when the epoch is no longer ours (also on SQLSTATE 40001 under repeatable read).
 * After a failed statement the transaction must be rolled back. Other errors: those of query.h. */
#pragma once
#include "store/pg/connection.h"

struct lease_info {
    int64_t epoch;
    int64_t renewals;
    int64_t length_us;
    int32_t backend_pid;
    char holder[128];
};
/* The lease row. */
bool lease_read(struct store *s, struct lease_info *ret, struct err *err) MUST_CHECK;
/* Try to take the leader's advisory lock, without waiting. */
bool lease_try_lock(struct store *s, bool *ret_locked, struct err *err) MUST_CHECK;
/* What a takeover gives. longest_us: a lease of an earlier leader lasts no longer than this from
 * now, whatever length that leader was told; at least our own length. */
struct lease_taken {
    int64_t epoch;
    int64_t longest_us;
};
/* Take over: epoch + 1, our holder name and backend pid. Requires the lock. */
bool lease_take(struct store *s, const char *holder, int64_t length_us, struct lease_taken *ret,
                struct err *err) MUST_CHECK;
/* Take over from a leader that no longer renews: increase the epoch first, so that the old leader
 * can commit nothing, then terminate its backend, then lock. *ret_taken false: it renewed the lease
 * after `seen`. */
bool lease_take_from_frozen(struct store *s, const struct lease_info *seen, const char *holder,
                            int64_t length_us, struct lease_taken *ret, bool *ret_taken,
                            struct err *err) MUST_CHECK;
/* length_us: longest_us of the takeover until that is over, then our own. ERR_NOT_LEADER: the epoch
 * is over */
bool lease_renew(struct store *s, int64_t epoch, int64_t length_us, struct err *err) MUST_CHECK;
bool lease_release(struct store *s, int64_t epoch,
                   struct err *err) MUST_CHECK; /* clean stop: end the lease and unlock */
/* Check that fsync, full_page_writes and synchronous_commit are on and the server is a primary.
 * ERR_PRECONDITION names the setting. */
bool lease_check_durability(struct store *s, struct err *err) MUST_CHECK;
/* Begin a transaction and lock the lease row. ERR_NOT_LEADER. */
bool leader_begin(struct store *s, int64_t epoch, struct err *err) MUST_CHECK;
bool leader_commit(struct store *s, struct err *err)
    MUST_CHECK; /* connection lost: the outcome is unknown, stop leading and read again */
void leader_rollback(struct store *s);
/* The id of this installation. */
bool install_id(struct store *s, char ret[static 40], struct err *err) MUST_CHECK;
