/* Aim: the promises of core/protocol.h hold in every order of events, not only in those a test
 * thinks of. Method: breadth-first search over all interleavings of two controllers, a store and
 * SageMaker (model.h), with the protocol's own object file of the release build. States are
 * remembered, so the search goes on until nothing new turns up, or to the depth asked for. Each
 * state is checked, and from each a calm world must come to an end. A broken promise is printed as
 * the shortest story that leads to it.
 *
 * Usage: exhaustive [--depth N] [--states N] [--only NAME]; prints TAP. Exit 1: a promise is
 * broken. */
#include "model.h"

#include <stdio.h>
#include <time.h>

#define CALM_ROUNDS_MAX 60

struct node { /* how a state was reached first */
    uint32_t parent;
    struct move move;
};
struct set { /* of hashes; 0 is never a member */
    uint64_t *slots;
    size_t cap, n; /* cap: a power of two */
};
struct frontier {
    struct world *worlds;
    uint32_t *nodes;
    size_t n, cap;
};
struct search {
    const struct model_config *cfg;
    struct set seen, calm;
    struct node *nodes;
    size_t nodes_n, nodes_cap;
    struct frontier now, next;
    uint64_t transitions;
    int depth;
    bool closed;
    const char *wrong;
    uint32_t wrong_node;
};

/* For asserts inside the protocol: the story so far is what makes one useful. */
static struct search *running;

static uint64_t hash_of(const struct world *w)
{
    const uint8_t *p = (const uint8_t *)w;
    uint64_t h = 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < sizeof *w; i += 8) {
        uint64_t word = 0;
        memcpy(&word, p + i, MIN(sizeof *w - i, sizeof word));
        __extension__ unsigned __int128 wide = (unsigned __int128)(h ^ word) * 0xd6e8feb86659fd93U;
        h = (uint64_t)wide ^ (uint64_t)(wide >> 64) ^ (i * 0x2545f4914f6cdd1d);
    }
    return h == 0 ? 1 : h;
}

static bool set_add(struct set *s, uint64_t h)
{
    if (s->n * 2 >= s->cap) {
        size_t cap = s->cap == 0 ? 1 << 16 : s->cap * 2;
        uint64_t *old = s->slots;
        size_t old_cap = s->cap;
        s->slots = calloc(cap, sizeof *s->slots);
        s->cap = cap;
        s->n = 0;
        if (s->slots == NULL) {
            abort();
        }
        for (size_t i = 0; i < old_cap; i++) {
            if (old[i] != 0) {
                (void)set_add(s, old[i]);
            }
        }
        free(old);
    }
    size_t i = h & (s->cap - 1);
    while (s->slots[i] != 0) {
        if (s->slots[i] == h) {
            return false;
        }
        i = (i + 1) & (s->cap - 1);
    }
    s->slots[i] = h;
    s->n++;
    return true;
}

static bool set_has(const struct set *s, uint64_t h)
{
    size_t i = h & (s->cap - 1);
    while (s->cap > 0 && s->slots[i] != 0) {
        if (s->slots[i] == h) {
            return true;
        }
        i = (i + 1) & (s->cap - 1);
    }
    return false;
}

static void *grown(void *p, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) {
        return p;
    }
    *cap = *cap == 0 ? 1 << 12 : *cap * 2;
    void *q = realloc(p, *cap * size);
    if (q == NULL) {
        abort();
    }
    return q;
}

static uint32_t node_add(struct search *s, uint32_t parent, struct move m)
{
    s->nodes = grown(s->nodes, s->nodes_n, &s->nodes_cap, sizeof *s->nodes);
    s->nodes[s->nodes_n] = (struct node){parent, m};
    return (uint32_t)s->nodes_n++;
}

static void frontier_add(struct frontier *f, const struct world *w, uint32_t node)
{
    size_t cap = f->cap;
    f->worlds = grown(f->worlds, f->n, &cap, sizeof *f->worlds);
    f->nodes = grown(f->nodes, f->n, &f->cap, sizeof *f->nodes);
    f->worlds[f->n] = *w;
    f->nodes[f->n++] = node;
}

/* --- the story
 * -----------------------------------------------------------------------------------*/

static void print_row(const struct world *w, const struct search *s, const int part_of[PARTS])
{
    printf("#        ");
    for (int k = 0; k < s->cfg->parts; k++) {
        const struct part *p = &w->part[part_of[k]];
        printf("%s part %c:", k > 0 ? ";" : "", 'A' + k);
        for (int i = 0; i < TRIES && p->row[i] != ROW_NONE; i++) {
            printf(" a%d %s", i + 1, attempt_state_name((enum attempt_state)p->row[i]));
        }
    }
    printf("; %d held\n", w->held);
}

/* Print the moves that lead to a node. Equal states are stored once, with controllers and parts in
 * sorted order; names follow the one they began with. */
static void tell(const struct search *s, uint32_t node, const char *wrong)
{
    static struct move path[4096];
    int n = 0;
    for (uint32_t i = node; i != 0 && n < 4096; i = s->nodes[i].parent) {
        path[n++] = s->nodes[i].move;
    }
    struct world w;
    model_init(&w);
    int ctl_name[CTLS] = {0, 1}; /* name of the one at this place */
    int part_name[PARTS] = {0, 1};
    printf("# BROKEN in %s after %d steps: %s\n", s->cfg->name, n, wrong);
    for (int k = 1; n-- > 0; k++) {
        struct move m = path[n];
        char ctl[2] = {(char)('1' + ctl_name[m.c % CTLS]), '\0'};
        char part[2] = {(char)('A' + part_name[m.p]), '\0'};
        char ctl_words[] = "controller ?";
        char line[200];
        ctl_words[sizeof ctl_words - 2] = ctl[0];
        model_tell(&w, m, ctl_words, part, line, sizeof line);
        const char *ignored = NULL;
        printf("#   %2d  %s\n", k, line);
        fflush(stdout);
        if (!model_apply(&w, m, s->cfg, &ignored) || ignored != NULL) {
            break;
        }
        int swapped;
        model_canon(&w, s->cfg, &swapped);
        if (swapped & 1) {
            ctl_name[0] = 1 - ctl_name[0];
            ctl_name[1] = 1 - ctl_name[1];
        }
        if (swapped & 2) {
            part_name[0] = 1 - part_name[0];
            part_name[1] = 1 - part_name[1];
        }
        int part_of[PARTS] = {part_name[0], part_name[1]}; /* a swap is its own inverse */
        print_row(&w, s, part_of);
    }
}

/* The release objects call this when one of their asserts fails. */
NORETURN void assert_failed(const char *cond, const char *file, int line, const char *func)
{
    printf("not ok - assert in %s (%s:%d): %s\n", func, file, line, cond);
    if (running != NULL) {
        struct search *s = running;
        running = NULL;
        tell(s, s->wrong_node, "an assert of the protocol");
    }
    fflush(stdout);
    _Exit(1);
}

/* --- the search
 * ----------------------------------------------------------------------------------*/

/* "Always an end": without further faults every part ends. The states on a way that did end are
 * remembered; one that comes back to itself never does. */
static bool calm_ends(struct search *s, struct world w)
{
    uint64_t way[CALM_ROUNDS_MAX];
    for (int round = 0; round < CALM_ROUNDS_MAX; round++) {
        way[round] = hash_of(&w);
        if (set_has(&s->calm, way[round]) || model_ended(&w, s->cfg)) {
            for (int i = 0; i <= round; i++) {
                (void)set_add(&s->calm, way[i]);
            }
            return true;
        }
        int swapped;
        model_calm_round(&w, s->cfg);
        model_canon(&w, s->cfg, &swapped);
    }
    return false;
}

static void broken(struct search *s, uint32_t node, const char *wrong)
{
    if (s->wrong == NULL) {
        s->wrong = wrong;
        s->wrong_node = node;
    }
}

static void visit(struct search *s, struct world *w, uint32_t parent, struct move m)
{
    const char *wrong = NULL;
    s->wrong_node = parent; /* for asserts */
    if (!model_apply(w, m, s->cfg, &wrong)) {
        return;
    }
    s->transitions++;
    int swapped;
    model_canon(w, s->cfg, &swapped);
    if (wrong != NULL) {
        broken(s, node_add(s, parent, m), wrong);
        return;
    }
    if (!set_add(&s->seen, hash_of(w))) {
        return;
    }
    uint32_t node = node_add(s, parent, m);
    wrong = model_check(w, s->cfg);
    if (wrong == NULL && !calm_ends(s, *w)) {
        wrong = "no way to an end: a calm world does not finish from here";
    }
    if (wrong != NULL) {
        broken(s, node, wrong);
    }
    frontier_add(&s->next, w, node);
}

static void search(struct search *s, int depth_max, size_t states_max)
{
    struct world w;
    int swapped;
    model_init(&w);
    model_canon(&w, s->cfg, &swapped);
    (void)set_add(&s->seen, hash_of(&w));
    frontier_add(&s->now, &w, node_add(s, 0, (struct move){0}));
    running = s;
    for (s->depth = 0; s->now.n > 0 && s->depth < depth_max && s->wrong == NULL; s->depth++) {
        s->next.n = 0;
        for (size_t i = 0; i < s->now.n && s->wrong == NULL && s->seen.n < states_max; i++) {
            struct move m;
            for (int k = 0; s->wrong == NULL && model_move(k, s->cfg, &m); k++) {
                w = s->now.worlds[i];
                visit(s, &w, s->now.nodes[i], m);
            }
        }
        struct frontier done = s->now;
        s->now = s->next;
        s->next = done;
        if (s->seen.n >= states_max) {
            break;
        }
    }
    running = NULL;
    s->closed = s->now.n == 0;
}

static void search_done(struct search *s)
{
    free(s->seen.slots);
    free(s->calm.slots);
    free(s->nodes);
    free(s->now.worlds);
    free(s->now.nodes);
    free(s->next.worlds);
    free(s->next.nodes);
}

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const struct model_config configs[] = {
    {"one part, two slots, no crashes", 1, 2, false},
    {"one part, two slots, crashes", 1, 2, true},
    {"two parts, one slot, no crashes", 2, 1, false},
    {"two parts, one slot, crashes", 2, 1, true},
};

int main(int argc, char **argv)
{
    int depth_max = 1000;
    size_t states_max = 4000000;
    const char *only = "";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--depth") == 0) {
            depth_max = (int)strtol(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--states") == 0) {
            states_max = (size_t)strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0) {
            only = argv[i + 1];
        }
    }
    int failed = 0;
    for (size_t i = 0; i < ARRAY_LEN(configs); i++) {
        if (strstr(configs[i].name, only) == NULL) {
            continue;
        }
        struct search s = {.cfg = &configs[i]};
        double began = seconds();
        search(&s, depth_max, states_max);
        printf("%s - exhaustive: %s: %zu states, %llu moves, %s %d steps, %.1f s\n",
               s.wrong == NULL ? "ok" : "not ok", s.cfg->name, s.seen.n,
               (unsigned long long)s.transitions, s.closed ? "all of them within" : "cut at",
               s.depth, seconds() - began);
        fflush(stdout);
        if (s.wrong != NULL) {
            tell(&s, s.wrong_node, s.wrong);
            failed++;
        }
        search_done(&s);
    }
    return failed > 0;
}
