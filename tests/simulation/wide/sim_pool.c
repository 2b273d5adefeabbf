/* Warm pools whose jobs have ended: looked at when they may be gone, ended when the plan says so,
 * their idle time booked; and, after a failover, jobs without a row, adopted by their name. */
#include "sim_world.h"

void pools_add(struct world *w, struct ctl *c, int attempt)
{
    if (c->pool_n == c->pool_cap) {
        c->pool_cap = MAX(16, c->pool_cap * 2);
        c->pool = xrealloc(c->pool, c->pool_cap * sizeof *c->pool);
    }
    c->pool[c->pool_n++] = (struct pool_mem){
        .attempt = attempt, .row = *ATTEMPT(w, attempt), .look_us = ctl_boot(w, c) + MINUTE};
    c->decide = true;
}

static struct pool_mem *pool_get(struct ctl *c, int attempt)
{
    for (size_t i = 0; i < c->pool_n; i++) {
        if (c->pool[i].attempt == attempt) {
            return &c->pool[i];
        }
    }
    return NULL;
}

void pools_claimed(struct ctl *c, int attempt)
{
    struct pool_mem *p = pool_get(c, attempt);
    struct live *a = live_get(c, attempt); /* its output may still be under check */
    if (p != NULL) {
        p->row.claimed = true;
    }
    if (a != NULL) {
        a->row.claimed = true;
    }
}

void pools_end(struct world *w, struct ctl *c, int attempt)
{
    struct pool_mem *p = pool_get(c, attempt);
    (void)w;
    if (p != NULL) {
        p->ending = true;
        p->look_us = 0;
    }
}

static void ask(struct world *w, struct ctl *c, struct pool_mem *p, enum call_kind kind)
{
    int k = call_new(w, c, kind, -1);
    w->calls[k].attempt = p->attempt;
    w->calls[k].name_hash = p->row.name_hash;
    w->calls[k].request = p->row.request;
    p->asking = true;
    call_send(w, k);
}

void pools_tick(struct world *w, struct ctl *c)
{
    int64_t now_us = ctl_boot(w, c);
    for (size_t i = 0; i < c->pool_n; i++) {
        struct pool_mem *p = &c->pool[i];
        if (p->asking || now_us < p->look_us) {
            continue;
        }
        p->look_us = now_us + MINUTE;
        p->row.claimed = ATTEMPT(w, p->attempt)->claimed;
        ask(w, c, p, p->ending && !p->end_asked ? CALL_UPDATE : CALL_DESCRIBE);
    }
}

void pools_reply(struct world *w, struct ctl *c, const struct call *k)
{
    struct pool_mem *p = pool_get(c, k->attempt);
    if (p == NULL) {
        return;
    }
    p->asking = false;
    if (k->kind == CALL_UPDATE) {
        p->end_asked = k->answer == ANSWER_OK;
        p->look_us = ctl_boot(w, c) + SEC;
        return;
    }
    bool told = k->answer == ANSWER_OK && k->ours && k->seen.has_pool &&
                (k->seen.pool == POOL_REUSED || k->seen.pool == POOL_TERMINATED);
    if (!told || !db_begin(w, c)) {
        return;
    }
    int attempt = p->attempt;
    bool swapped = k->seen.pool != POOL_REUSED || rows_reused(w, attempt, k->seen.reused_by);
    if (!swapped || !rows_pool(w, attempt, k->seen.pool, k->seen.retained_s * p->row.instances)) {
        ctl_lose(w, c, "a pool could not be closed");
        return;
    }
    if (!db_commit(w, c)) {
        return;
    }
    p = pool_get(c, attempt);
    ASSERT(p != NULL);
    *p = c->pool[--c->pool_n];
    view_copy(w, c, false);
    c->decide = c->look_at_db = true;
}

/* The number before `*end`, which moves to what stands before it and its hyphen; -1: none. */
static int64_t number_before(const char *s, size_t *end)
{
    int64_t v = 0, scale = 1;
    size_t i = *end;
    while (i > 0 && s[i - 1] >= '0' && s[i - 1] <= '9' && scale < INT64_C(1000000000)) {
        v += (s[--i] - '0') * scale;
        scale *= 10;
    }
    if (i == *end || i == 0) {
        return -1;
    }
    *end = i - 1;
    return v;
}

/* <prefix>-<campaign>-<stage>-<task>-a<n>-<hash8>: the task whose attempt n has this very name. */
static bool task_of_name(struct world *w, const char *name, int *ret_task, int *ret_n)
{
    size_t n = strlen(name);
    if (n < 9) {
        return false;
    }
    n -= 9;
    int64_t attempt_n = number_before(name, &n); /* leaves the 'a' behind */
    if (attempt_n < 1 || n == 0 || name[n] != 'a') {
        return false;
    }
    n--;
    int64_t seq = number_before(name, &n);
    for (int s = 0; seq >= 0 && s < (int)w->db.t[T_STAGE].n; s++) {
        struct job_name want;
        if (seq >= STAGE(w, s)->tasks_n) {
            continue;
        }
        attempt_name_of(w, STAGE(w, s)->task0 + (int)seq, (int)attempt_n, &want);
        if (strcmp(want.s, name) == 0) {
            *ret_task = STAGE(w, s)->task0 + (int)seq;
            *ret_n = (int)attempt_n;
            return true;
        }
    }
    return false;
}

static bool may_adopt(struct world *w, int task, int n)
{
    const struct db_task *t = TASK(w, task);
    return n == t->names + 1 &&
           (t->state == TASK_WAITING || t->state == TASK_FAILED || t->state == TASK_HELD);
}

static bool adopt(struct world *w, struct ctl *c, int task, int n, const struct job *j)
{
    if (!db_begin(w, c)) {
        return false;
    }
    size_t id = w->db.t[T_ATTEMPT].n;
    if (!rows_adopt(w, c, task, n, j)) {
        ctl_lose(w, c, "an adoption failed");
        return false;
    }
    if (!db_commit(w, c)) {
        return false;
    }
    SOMETIMES(w, ADOPTED);
    judge_adopted(w, (int)id);
    view_copy(w, c, false);
    view_take(w, c, STAGE(w, TASK_STAGE(w, task))->campaign); /* it waits no more */
    breaker_started(&c->mem[TASK_STAGE(w, task)].breaker, (int64_t)id + 1);
    (void)live_add(w, c, (int)id, false);
    return c->leading;
}

static bool end_hold(struct world *w, struct ctl *c)
{
    if (!db_begin(w, c)) {
        return false;
    }
    ((struct db_lease *)db_touch(w, T_LEASE, 0))->timeline = w->db.timeline;
    if (!db_commit(w, c)) {
        return false;
    }
    tell(w, -1, "controller %d ends its hold", c->id);
    c->hold = false;
    c->decide = c->look_at_db = true;
    return true;
}

/* A List during the hold: jobs of ours without a row are adopted, oldest first. The hold ends with
 * a List sent after every Create an older leader signed has landed or expired, in two readings in a
 * row that leave nothing to adopt (one List may omit a job). */
void adopt_listed(struct world *w, struct ctl *c, struct call *k)
{
    bool left = false;
    for (size_t i = k->list_n; i-- > 0 && c->leading;) {
        int task, n;
        struct job *j = &w->aws.jobs[k->list[i].job];
        if (!task_of_name(w, j->name.s, &task, &n) || n <= TASK(w, task)->names) {
            continue;
        }
        if (j->intent < 0) { /* a Describe shows that it is a stranger's */
            continue;
        }
        left = true;
        if (may_adopt(w, task, n) && !adopt(w, c, task, n, j)) {
            return;
        }
    }
    c->clean_lists = left || k->boot_us < c->hold_until_us ? 0 : c->clean_lists + 1;
    if (c->leading && c->clean_lists >= 2) {
        (void)end_hold(w, c);
    }
}
