/* xoshiro256++ seeded by splitmix64 (Blackman and Vigna, public domain algorithms). */
#include "common/rng.h"
#include <errno.h>
#include <math.h>
#include <sys/random.h>

static uint64_t splitmix64(uint64_t *x)
{
    *x += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *x;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void rng_seed(struct rng *r, uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_LEN(r->s); i++) {
        r->s[i] = splitmix64(&seed);
    }
}

void rng_split(const struct rng *from, const char *name, struct rng *ret)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *p = name; *p != '\0'; p++) {
        h = (h ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
    }
    for (size_t i = 0; i < ARRAY_LEN(from->s); i++) {
        uint64_t x = h ^ from->s[i];
        h = splitmix64(&x);
    }
    rng_seed(ret, h);
}

uint64_t rng_u64(struct rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotl(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    ASSERT(n > 0);
    /* 2^64 mod n: smaller draws would bias the result to low values */
    uint64_t least = (UINT64_C(0) - n) % n;
    for (;;) {
        uint64_t x = rng_u64(r);
        if (x >= least) {
            return x % n;
        }
    }
}

double rng_unit(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1.0p-53;
}

bool rng_chance(struct rng *r, double p)
{
    return rng_unit(r) < p;
}

/* Box-Muller without keeping the second value: the state stays the four words. */
double rng_normal(struct rng *r)
{
    double u = 1.0 - rng_unit(r); /* (0, 1] */
    double v = rng_unit(r);
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

void rng_secret(void *p, size_t n)
{
    char *at = p;
    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0) {
            ASSERT(errno == EINTR);
            continue;
        }
        at += got;
        n -= (size_t)got;
    }
}
