/* Seeded PRNG (xoshiro256++ seeded by splitmix64): the same seed gives the same numbers on every
 * machine. Not for secrets. */
#pragma once
#include "base.h"

struct rng {
    uint64_t s[4];
};
void rng_seed(struct rng *r, uint64_t seed);
/* An independent stream for a named component: more draws in one do not change the others. */
void rng_split(const struct rng *from, const char *name, struct rng *ret);
uint64_t rng_u64(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); /* [0, n), n > 0, unbiased */
double rng_unit(struct rng *r);                /* [0, 1) */
bool rng_chance(struct rng *r, double p);
double rng_normal(struct rng *r);
/* Random bytes from the kernel, for tokens and ids. */
void rng_secret(void *p, size_t n);
