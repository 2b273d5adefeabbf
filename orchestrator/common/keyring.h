/* The credentials a client signs with: found once at the start, renewed in the background before
 * they expire, served as long as they live.
 *
 * 1. Renewing never blocks: it runs on the loop, and the old keys are given out meanwhile. With
 *    more than half an hour left it begins 15 minutes before the end, else after half of what is
 *    left; up to a tenth earlier, so that many programs do not ask at once.
 * 2. A renewal that fails is repeated after 1 s, doubling up to a minute, with jitter.
 * 3. A refusal by a service means that keys were rotated or revoked: they are read again, at most
 *    once a second.
 * 4. Each renewal searches the environment and the profile files again. */
#pragma once
#include "common/loop.h"
#include "common/sigv4.h"

struct keyring;
/* Search and fetch the first set, blocking, on a loop of its own: for the start of a program or
 * thread. ERR_UNAUTHENTICATED says what is wrong. keyring_unref frees with the last reference. */
bool keyring_new(struct loop *l, const char *region, struct keyring **ret,
                 struct err *err) MUST_CHECK;
struct keyring *keyring_ref(struct keyring *k);
void keyring_unref(struct keyring *k); /* NULL is ignored */
/* Keys that are valid now, borrowed until the next pass of the loop; NULL: they have expired and
 * none followed, err (ERR_UNAUTHENTICATED) says why. */
const struct aws_creds *keyring_get(struct keyring *k, struct err *err);
/* A service has refused the keys as expired or unknown. */
void keyring_refused(struct keyring *k);
/* A renewal is under way. */
bool keyring_is_renewing(const struct keyring *k);
/* Keys that can change while the program runs, other than by an edited file. */
bool keyring_renews(const struct keyring *k);
/* AWS' clock minus ours. */
int64_t keyring_skew_us(const struct keyring *k);
void keyring_set_skew(struct keyring *k, int64_t skew_us);
/* When to renew keys of which left_us > 0 is left, counted from now; r in [0, 1) is the jitter.
 * Pure. */
int64_t keyring_renew_after_us(int64_t left_us, double r);
