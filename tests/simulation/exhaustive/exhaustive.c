/* Aim: the promises of core/protocol/protocol.h hold in every order of events, not only in those a
 * test thinks of. Method: breadth-first search over all interleavings of two controllers, a store
 * and SageMaker (world.h), with the protocol's own object file of the release build. States are
 * remembered, so the search goes on until nothing new turns up, or to the depth asked for. Each
 * state is checked, and from each a calm world must come to an end. A broken promise is printed as
 * the shortest story that leads to it.  Usage: exhaustive [--depth N] [--states N] [--walks N]
 * [--only NAME]; prints TAP. Exit 1: a promise is broken. */
#include "world.h"

#include <stdio.h>
#include <time.h>

#define CALM_ROUNDS_MAX 60
#define PATH_MAX_MOVES  200
#define WALK_STEPS      40
#define WALK_MOVES_MAX  400

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
struct path {
    struct move moves[PATH_MAX_MOVES];
    int n;
};
struct search {
    const struct world_config *cfg;
    struct set seen, calm;
    struct node *nodes;
    size_t nodes_n, nodes_cap;
    struct frontier now, next;
    uint64_t transitions, walked;
    int depth;
    bool closed;
    bool in_calm; /* the promise broke in the calm after the last step of the story */
    const char *wrong;
    struct path *path; /* the node to print: of `wrong`, or of the walk under way */
    uint32_t at;       /* while it searches: the node it expands */
    struct move trying;
};

/* For asserts inside the protocol: an abort prints the story that led to it. */
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

static void print_rows(const struct world *w, const struct search *s, const int part_of[PARTS])
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

/* Moves from the beginning to a node: the story of a broken promise. */
static void path_to(const struct search *s, uint32_t node, struct path *ret)
{
    ret->n = 0;
    for (uint32_t i = node; i != 0; i = s->nodes[i].parent) {
        ret->n++;
    }
    int at = ret->n = MIN(ret->n, PATH_MAX_MOVES);
    for (uint32_t i = node; i != 0 && at > 0; i = s->nodes[i].parent) {
        ret->moves[--at] = s->nodes[i].move;
    }
}

static void swap_names(int name[2])
{
    int first = name[0];
    name[0] = name[1];
    name[1] = first;
}

/* Equal states are stored once, with controllers and parts in sorted order; in the story each keeps
 * the name it began with. */
static void tell(const struct search *s, const struct path *path, const char *wrong)
{
    struct world w;
    int swapped;
    world_init(&w);
    world_canon(&w, s->cfg, &swapped);
    int ctl_name[CTLS] = {0, 1}; /* name of the one at this place */
    int part_name[PARTS] = {0, 1};
    printf("# BROKEN in %s after %d steps%s: %s\n", s->cfg->name, path->n,
           s->in_calm ? " and a calm while" : "", wrong);
    for (int k = 0; k < path->n; k++) {
        struct move m = path->moves[k];
        char ctl[] = "controller ?";
        ctl[sizeof ctl - 2] = (char)('1' + ctl_name[m.c % CTLS]);
        char part[2] = {(char)('A' + part_name[m.p]), '\0'};
        char line[200];
        world_tell(&w, m, ctl, part, line, sizeof line);
        const char *broken = NULL;
        printf("#   %2d  %s\n", k + 1, line);
        (void)fflush(stdout);
        if (!world_apply(&w, m, s->cfg, &broken) || broken != NULL) {
            break;
        }
        world_canon(&w, s->cfg, &swapped);
        if (swapped & 1) {
            swap_names(ctl_name);
        }
        if (swapped & 2) {
            swap_names(part_name);
        }
        print_rows(&w, s, part_name); /* a swap is its own inverse */
    }
}

/* The release objects call this when one of their asserts fails. */
NORETURN void assert_failed(const char *cond, const char *file, int line, const char *func)
{
    printf("not ok - assert in %s (%s:%d): %s\n", func, file, line, cond);
    if (running != NULL) {
        struct search *s = running;
        running = NULL;
        if (s->at != 0) {
            path_to(s, s->at, s->path);
        }
        s->path->moves[s->path->n++] = s->trying;
        tell(s, s->path, "an assert of the protocol");
    }
    (void)fflush(stdout);
    _Exit(1);
}

/* Checks that without further faults every part ends. States on a path that ended are
 * remembered; a path that returns to one of its own states never ends. Returns NULL, or what is
 * wrong. */
static const char *calm_end(struct search *s, const struct world *from)
{
    struct world w = *from;
    uint64_t way[CALM_ROUNDS_MAX];
    for (int round = 0; round < CALM_ROUNDS_MAX; round++) {
        way[round] = hash_of(&w);
        if (set_has(&s->calm, way[round]) || world_ended(&w, s->cfg)) {
            for (int i = 0; i <= round; i++) {
                (void)set_add(&s->calm, way[i]);
            }
            return NULL;
        }
        int swapped;
        const char *wrong = world_calm_round(&w, s->cfg);
        if (wrong != NULL) {
            s->in_calm = true;
            return wrong;
        }
        world_canon(&w, s->cfg, &swapped);
    }
    return "no way to an end: a calm world does not finish from here";
}

/* Checks a state reached for the first time. Returns NULL, or what is wrong. */
static const char *judge(struct search *s, const struct world *w)
{
    const char *wrong = world_check(w, s->cfg);
    return wrong != NULL ? wrong : calm_end(s, w);
}

static void visit(struct search *s, struct world *w, uint32_t parent, struct move m)
{
    const char *wrong = NULL;
    s->at = parent;
    s->trying = m;
    if (!world_apply(w, m, s->cfg, &wrong)) {
        return;
    }
    s->transitions++;
    int swapped;
    world_canon(w, s->cfg, &swapped);
    if (wrong == NULL && !set_add(&s->seen, hash_of(w))) {
        return;
    }
    uint32_t node = node_add(s, parent, m);
    wrong = wrong != NULL ? wrong : judge(s, w);
    if (wrong != NULL) {
        s->wrong = wrong;
        path_to(s, node, s->path);
        return;
    }
    frontier_add(&s->next, w, node);
}

static void search(struct search *s, int depth_max, size_t states_max)
{
    struct world w;
    int swapped;
    world_init(&w);
    world_canon(&w, s->cfg, &swapped);
    (void)set_add(&s->seen, hash_of(&w));
    frontier_add(&s->now, &w, node_add(s, 0, (struct move){0}));
    running = s;
    for (s->depth = 0; s->now.n > 0 && s->depth < depth_max && s->wrong == NULL; s->depth++) {
        s->next.n = 0;
        for (size_t i = 0; i < s->now.n && s->wrong == NULL && s->seen.n < states_max; i++) {
            struct move m;
            for (int k = 0; s->wrong == NULL && world_move(k, s->cfg, &m); k++) {
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

static uint64_t draw(uint64_t *rng, size_t n)
{
    *rng ^= *rng << 13;
    *rng ^= *rng >> 7;
    *rng ^= *rng << 17;
    return *rng % n;
}

/* Random walks beyond the depth of the search, from the states it did not expand. The seed is
 * fixed, a step is any possible move (crashes and strangers are rarer), each state is checked. */
static void walk(struct search *s, int walks)
{
    static struct move moves[WALK_MOVES_MAX];
    uint64_t rng = 0x5eed;
    size_t moves_n = 0;
    while (moves_n < WALK_MOVES_MAX && world_move((int)moves_n, s->cfg, &moves[moves_n])) {
        moves_n++;
    }
    running = s;
    for (int i = 0; i < walks && s->wrong == NULL && s->now.n > 0; i++) {
        size_t from = draw(&rng, s->now.n);
        struct world w = s->now.worlds[from];
        s->at = 0;
        path_to(s, s->now.nodes[from], s->path);
        for (int step = 0; step < WALK_STEPS && s->wrong == NULL;) {
            struct world next = w;
            s->trying = moves[draw(&rng, moves_n)];
            bool rare = s->trying.kind == MOVE_CRASH || s->trying.kind == MOVE_CANCEL;
            if ((rare && draw(&rng, 8) > 0) || !world_apply(&next, s->trying, s->cfg, &s->wrong)) {
                continue;
            }
            int swapped;
            world_canon(&next, s->cfg, &swapped);
            w = next;
            s->path->moves[s->path->n++] = s->trying;
            s->walked++;
            step++;
            if (s->wrong == NULL && set_add(&s->seen, hash_of(&w))) {
                s->wrong = judge(s, &w);
            }
        }
    }
    running = NULL;
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

static const struct world_config configs[] = {
    {"one part, two slots, no crashes", 1, 2, false},
    {"one part, two slots, crashes", 1, 2, true},
    {"two parts, one slot, no crashes", 2, 1, false},
    {"two parts, one slot, crashes", 2, 1, true},
};

/* One world, searched then walked. */
static bool run(const struct world_config *cfg, int depth_max, size_t states_max, int walks)
{
    static struct path path;
    path.n = 0;
    struct search s = {.cfg = cfg, .path = &path};
    double began = seconds();
    search(&s, depth_max, states_max);
    size_t states = s.seen.n;
    if (s.wrong == NULL) {
        walk(&s, walks);
    }
    printf(
        "%s - exhaustive: %s: %zu states, %llu moves, %s %d steps; then walks of %d: %llu moves, "
        "%zu more states; %.1f s\n",
        s.wrong == NULL ? "ok" : "not ok", cfg->name, states, (unsigned long long)s.transitions,
        s.closed ? "all there are, within" : "every order of", s.depth, WALK_STEPS,
        (unsigned long long)s.walked, s.seen.n - states, seconds() - began);
    (void)fflush(stdout);
    if (s.wrong != NULL) {
        tell(&s, &path, s.wrong);
    }
    bool ok = s.wrong == NULL;
    search_done(&s);
    return ok;
}

/* Checks coverage: all facts except FACT_HINT (it changes no state), all actions, and every edge
 * except those of states that this world's jobs do not have. */
static bool covers_all(void)
{
    const struct world_coverage *c = world_covered();
    bool ok = c->facts == ((1U << FACT_HINT) - 1) && c->actions == ((1U << (ACT_VOID + 1)) - 1);
    int edges = 0;
    for (int from = 0; from < ATTEMPT_STATE_COUNT; from++) {
        for (int to = 0; to < ATTEMPT_STATE_COUNT; to++) {
            bool outside =
                from == ATTEMPT_UPLOADING || to == ATTEMPT_UPLOADING || /* not modelled */
                (from == ATTEMPT_RUNNING && to == ATTEMPT_STARTING) ||  /* spot: not modelled */
                (from == ATTEMPT_INTENDED &&
                 (to == ATTEMPT_FAILED || to == ATTEMPT_CONFLICT)) ||  /* by way of unknown, void */
                (from >= ATTEMPT_SUBMITTED && to == ATTEMPT_CONFLICT); /* names are not freed */
            bool edge = attempt_edge((enum attempt_state)from, (enum attempt_state)to);
            edges += c->edges[from][to];
            if (edge && !outside && !c->edges[from][to]) {
                printf("#   never seen: %s -> %s\n", attempt_state_name((enum attempt_state)from),
                       attempt_state_name((enum attempt_state)to));
                ok = false;
            }
        }
    }
    printf("%s - exhaustive: facts %#x, actions %#x and %d edges occurred\n", ok ? "ok" : "not ok",
           c->facts, c->actions, edges);
    return ok;
}

int main(int argc, char **argv)
{
    int depth_max = 1000;
    size_t states_max = 1250000;
    int walks = 20000;
    const char *only = "";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--depth") == 0) {
            depth_max = (int)strtol(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--states") == 0) {
            states_max = (size_t)strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--walks") == 0) {
            walks = (int)strtol(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0) {
            only = argv[i + 1];
        }
    }
    int broken = 0;
    for (size_t i = 0; i < ARRAY_LEN(configs); i++) {
        if (broken == 0 && strstr(configs[i].name, only) != NULL) {
            broken += !run(&configs[i], depth_max, states_max, walks);
        }
    }
    return broken > 0 || !covers_all();
}
