/* Shrinks a seed that breaks a promise: removes faults, single occurrences of them, parts,
 * campaigns and controllers. Each step runs the seed again and keeps what still breaks the same
 * promise. Prints the story and the command that replays it. */
#include "sim_world.h"
#include <stdio.h>
#include <time.h>

static enum harm fault_by_word(const char *word, size_t n)
{
    for (int f = 0; f < FAULT_N; f++) {
        if (strlen(fault_word((enum harm)f)) == n &&
            strncmp(fault_word((enum harm)f), word, n) == 0) {
            return (enum harm)f;
        }
    }
    return FAULT_N;
}

static void deny(struct sim_config *cfg, enum harm f, uint32_t k)
{
    if (k >= FIRES_KEPT) {
        return;
    }
    if (cfg->deny[f] == NULL) {
        cfg->deny[f] = xcalloc(FIRES_KEPT / 8, 1);
    }
    cfg->deny[f][k / 8] |= (uint8_t)(1U << (k % 8));
}

void config_free(struct sim_config *cfg)
{
    for (int f = 0; f < FAULT_N; f++) {
        free(cfg->deny[f]);
        cfg->deny[f] = NULL;
    }
}

static void config_copy(struct sim_config *to, const struct sim_config *from)
{
    *to = *from;
    for (int f = 0; f < FAULT_N; f++) {
        if (from->deny[f] != NULL) {
            to->deny[f] = xmalloc(FIRES_KEPT / 8);
            memcpy(to->deny[f], from->deny[f], FIRES_KEPT / 8);
        }
    }
}

/* off: "CRASH,LATE"; denied: "CRASH:3,CRASH:7-12". */
void config_cut(struct sim_config *cfg, const char *off, const char *denied)
{
    while (off != NULL && *off != '\0') {
        size_t n = strcspn(off, ",");
        enum harm f = fault_by_word(off, n);
        if (f < FAULT_N) {
            cfg->strength[f] = 0;
        }
        off += n + (off[n] == ',');
    }
    while (denied != NULL && *denied != '\0') {
        size_t n = strcspn(denied, ":");
        enum harm f = fault_by_word(denied, n);
        char *end = NULL;
        const char *p = denied + n + (denied[n] == ':');
        uint32_t from = (uint32_t)strtoul(p, &end, 10);
        uint32_t to = *end == '-' ? (uint32_t)strtoul(end + 1, &end, 10) : from;
        for (uint32_t k = from; f < FAULT_N && k <= to && k < FIRES_KEPT; k++) {
            deny(cfg, f, k);
        }
        denied = *end == ',' ? end + 1 : "";
    }
}

struct hunt {
    struct sim_config best;
    struct outcome seen;
    struct coverage *cover;
    char invariant[24];
    time_t until;
    int runs;
};

/* Keeps the attempt as the best when it still breaks the same promise. */
static bool holds(struct hunt *h, const struct sim_config *cfg)
{
    struct outcome o;
    if (time(NULL) >= h->until) {
        return false;
    }
    h->runs++;
    sim_run(cfg, h->cover, &o);
    if (!o.broken || strcmp(o.invariant, h->invariant) != 0) {
        return false;
    }
    config_free(&h->best);
    config_copy(&h->best, cfg);
    h->seen = o;
    return true;
}

static bool try_strength(struct hunt *h, int f)
{
    struct sim_config cfg;
    config_copy(&cfg, &h->best);
    cfg.strength[f] = 0;
    bool ok = holds(h, &cfg);
    config_free(&cfg);
    return ok;
}

static void fewer_faults(struct hunt *h)
{
    for (int f = 0; f < FAULT_N; f++) {
        if (h->best.strength[f] > 0) {
            (void)try_strength(h, f);
        }
    }
}

static int faults_left(const struct hunt *h)
{
    int n = 0;
    for (int f = 0; f < FAULT_N; f++) {
        n += h->best.strength[f] > 0;
    }
    return n;
}

static bool try_sizes(struct hunt *h, int ctls, int campaigns, int parts)
{
    struct sim_config cfg;
    if (ctls > h->best.ctls || campaigns > h->best.campaigns || parts > h->best.parts) {
        return false;
    }
    config_copy(&cfg, &h->best);
    cfg.ctls = ctls;
    cfg.campaigns = campaigns;
    cfg.parts = parts;
    bool ok = holds(h, &cfg);
    config_free(&cfg);
    return ok;
}

static void smaller(struct hunt *h)
{
    for (int n = 1; n < h->best.ctls; n++) {
        (void)try_sizes(h, n, h->best.campaigns, h->best.parts);
    }
    (void)try_sizes(h, h->best.ctls, 1, h->best.parts);
    for (int parts = h->best.parts / 2; parts >= 1; parts /= 2) {
        (void)try_sizes(h, h->best.ctls, h->best.campaigns, parts);
    }
}

/* Removes occurrences of one fault, in ever smaller ranges. */
static void fewer_fires(struct hunt *h, enum harm f)
{
    uint32_t n = MIN(h->seen.fires[f], (uint32_t)FIRES_KEPT);
    for (uint32_t step = MAX(n / 2, 1U); n > 0; step /= 2) {
        for (uint32_t from = 0; from < n && time(NULL) < h->until; from += step) {
            struct sim_config cfg;
            config_copy(&cfg, &h->best);
            for (uint32_t k = from; k < MIN(from + step, n); k++) {
                deny(&cfg, f, k);
            }
            (void)holds(h, &cfg);
            config_free(&cfg);
        }
        if (step == 1) {
            return;
        }
    }
}

static void print_command(const struct hunt *h, uint64_t seed)
{
    struct sim_config whole;
    const char *comma = "";
    swarm_draw(seed, &whole);
    printf("# replay: build/release/tests/simulation/sim --story %llu --ctls %d --campaigns %d "
           "--parts %d --off ",
           (unsigned long long)seed, h->best.ctls, h->best.campaigns, h->best.parts);
    for (int f = 0; f < FAULT_N; f++) {
        if (whole.strength[f] > 0 && h->best.strength[f] <= 0) {
            printf("%s%s", comma, fault_word((enum harm)f));
            comma = ",";
        }
    }
    printf("%s --deny ", *comma == '\0' ? "NONE" : "");
    comma = "";
    for (int f = 0; f < FAULT_N; f++) {
        for (uint32_t k = 0; h->best.deny[f] != NULL && k < FIRES_KEPT; k++) {
            uint32_t to = k;
            while (to < FIRES_KEPT && (h->best.deny[f][to / 8] & (1U << (to % 8))) != 0) {
                to++;
            }
            if (to > k) {
                printf("%s%s:%u-%u", comma, fault_word((enum harm)f), k, to - 1);
                comma = ",";
                k = to;
            }
        }
    }
    printf("%s\n", *comma == '\0' ? "NONE:0" : "");
}

void shrink(const struct sim_config *cfg, const struct outcome *first, int seconds)
{
    struct hunt h = {.seen = *first, .until = time(NULL) + seconds};
    struct sim_config told;
    struct outcome o;
    memcpy(h.invariant, first->invariant, sizeof h.invariant);
    h.cover = xcalloc(1, sizeof *h.cover);
    config_copy(&h.best, cfg);
    smaller(&h);
    for (int left = FAULT_N + 1; faults_left(&h) < left && time(NULL) < h.until - seconds / 2;) {
        left = faults_left(&h);
        fewer_faults(&h);
        smaller(&h);
    }
    for (int f = 0; f < FAULT_N; f++) {
        if (h.best.strength[f] > 0 && h.seen.fires[f] > 0) {
            fewer_fires(&h, (enum harm)f);
        }
    }
    smaller(&h);
    printf("# shrunk in %d runs; what is left of the faults:\n", h.runs);
    for (int f = 0; f < FAULT_N; f++) {
        if (h.best.strength[f] > 0 && h.seen.fires[f] > 0) {
            printf("#   %s\n", fault_text((enum harm)f));
        }
    }
    config_copy(&told, &h.best);
    told.tell = true;
    told.story_lines = 30;
    sim_run(&told, h.cover, &o);
    print_command(&h, cfg->seed);
    config_free(&told);
    config_free(&h.best);
    free(h.cover);
}
