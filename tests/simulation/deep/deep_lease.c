/* What must hold of leadership (I12), judged by what goes over the wires: epochs only grow, no
 * transaction of an older epoch commits, nothing is sent to AWS after the sender's lease has ended,
 * and a droverd that slept past its lease begins nothing more. A lease is counted here from the
 * moment before its take or renewal was sent, which is never earlier than droverd counts it. Who
 * holds the lock keeps it for a whole lease: nobody takes it for frozen before, unless somebody has
 * written into the row how long that is. */
#include "deep.h"
#include "store/leader/lease.h"

void lease_asked(struct proc *p)
{
    p->lease_asked_us = deep->now_us;
}

void lease_renewed(struct proc *p)
{
    p->lease_until_us = p->lease_asked_us + p->lease_us;
}

static void taken_from(const struct proc *p)
{
    for (int i = 0; i < deep->procs_n && !deep->restores && !figures_of_lease(); i++) {
        const struct proc *q = &deep->procs[i];
        if (q != p && q->up && q->epoch == deep->epoch && deep->now_us < q->lease_until_us) {
            wrong("I12", "droverd %d takes droverd %d for frozen, whose lease lasts %lld s", p->id,
                  q->id, (long long)((q->lease_until_us - deep->now_us) / SEC));
        }
    }
}

void lease_taken(struct proc *p, int64_t epoch, bool locked)
{
    if (!locked) {
        taken_from(p);
    }
    if (epoch <= deep->epoch) {
        wrong("I12", "droverd %d leads under epoch %lld, and %lld was taken before", p->id,
              (long long)epoch, (long long)deep->epoch);
    }
    deep->epoch = p->epoch = epoch;
    deep->led_from = wall_now();
    lies_disturbed();
    p->takes = true;
    p->loaded = false;
    lease_renewed(p);
}

void lease_begins(const struct proc *p)
{
    if (p->lease_until_us < p->pass_us) {
        wrong("I12", "droverd %d goes on, its lease has ended %lld s before", p->id,
              (long long)((p->pass_us - p->lease_until_us) / SEC));
    }
}

void lease_committed(const struct proc *p)
{
    if (p->epoch != deep->epoch) {
        wrong("I12", "droverd %d commits under epoch %lld, %lld is taken", p->id,
              (long long)p->epoch, (long long)deep->epoch);
    }
}

void lease_sends(const struct proc *p, const char *what, const char *name)
{
    if (deep->now_us > p->lease_until_us) {
        wrong("I12", "droverd %d sends %s %s, its lease has ended %lld ms before", p->id, what,
              name, (long long)((deep->now_us - p->lease_until_us) / 1000));
    }
}
