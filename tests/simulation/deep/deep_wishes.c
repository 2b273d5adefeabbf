/* What people write and want of file systems and endpoints: their stages, deletions, later ends. */
#include "common/cleanup.h"
#include "deep.h"
#include "store/api/campaigns.h"
#include "store/api/endpoints.h"
#include "store/api/filesystems.h"
#include "store/pg/tx.h"

#define VPC "    vpc: {subnets: [subnet-0a1b2c3d], security_groups: [sg-0a1b2c3d]}\n"

void wish_volume(struct buf *b, struct rng *r)
{
    buf_addf(b, "  - name: vol\n    kind: lustre\n    size_gb: 1200\n    ttl: %lldm\n" VPC,
             (long long)(rng_chance(r, 0.3) ? between(r, 20, 60) : between(r, 60, 400)));
    if (rng_chance(r, 0.5)) {
        buf_addf(b, "    import: \"s3://bbb/in/\"\n    export: %s\n",
                 rng_chance(r, 0.5) ? "true" : "false");
    }
    if (rng_chance(r, 0.2)) {
        buf_add_cstr(b, "    delete: after_ttl\n");
    }
}

void wish_mount(struct buf *b)
{
    buf_add_cstr(b, "    input: {images: \"lustre:vol\"}\n" VPC);
}

void wish_endpoint(struct buf *b, struct rng *r, const char *image, int last)
{
    buf_add_cstr(b, "  - name: serve\n    kind: endpoint\n");
    if (rng_chance(r, 0.4)) {
        buf_addf(b, "    needs: s%d\n", last);
    }
    int64_t ttl = between(r, 5, 90);
    buf_addf(b,
             "    model: {data: \"s3://bbb/model.tar.gz\", image: \"%s\"}\n    instance_type: %s\n"
             "    ttl: %lldm\n",
             image, deep_types[rng_below(r, TYPES)], (long long)ttl);
    if (ttl >= 20 && rng_chance(r, 0.4)) {
        buf_addf(b, "    idle: %lldm\n", (long long)between(r, 5, ttl / 2));
    }
    wish_test(b, r);
}

void wish_test(struct buf *b, struct rng *r)
{
    if (rng_chance(r, 0.7)) {
        buf_add_cstr(b, "    smoke_test: {payloads: [{x: 1}, {x: 2}]}\n");
    }
}

static bool end_named(const char *name, bool endpoint, struct err *err)
{
    AUTO_TX struct store *tx = deep->api;
    return tx_begin(tx, TX_WRITE, err) &&
           (endpoint ? apidb_endpoint_delete(tx, name, err)
                     : apidb_filesystem_delete(tx, name, err)) &&
           apidb_notify(tx, err) && tx_commit(tx, err);
}

static bool end_volume(struct err *err)
{
    struct rng *r = &deep->rng_people;
    size_t n = deep->lustres_n;
    return n == 0 || end_named(deep->lustres[rng_below(r, n)].token, false, err);
}

static const struct hosted *some_endpoint(void)
{
    struct rng *r = &deep->rng_people;
    return deep->hosted_n > 0 ? &deep->hosted[rng_below(r, deep->hosted_n)] : NULL;
}

static bool end_endpoint(struct err *err)
{
    const struct hosted *h = some_endpoint();
    return h == NULL || end_named(h->name, true, err);
}

static bool extend(struct err *err)
{
    const struct hosted *h = some_endpoint();
    struct apidb_endpoint e;
    usec_t until_us = wall_now() + between(&deep->rng_people, 5, 120) * MINUTE;
    AUTO_TX struct store *tx = deep->api;
    if (h == NULL) {
        return true;
    }
    return tx_begin(tx, TX_WRITE, err) && apidb_endpoint_lock(tx, h->name, err) &&
           apidb_endpoint_terms(tx, h->name, &e, err) &&
           (e.state == ENDPOINT_IN_SERVICE && !e.delete_asked &&
                    until_us >= MAX(e.until_us, e.extend_us)
                ? apidb_endpoint_extend(tx, h->name, until_us, err)
                : err_set(err, ERR_CONFLICT, "it cannot live longer")) &&
           apidb_notify(tx, err) && tx_commit(tx, err);
}

/* arg: whether it is an endpoint. */
static void regret(void *ctx, int64_t arg)
{
    struct err err = ERR_INIT;
    if (deep->now_us < deep->db_down_until_us) {
        return;
    }
    bool ok = end_named(ctx, arg != 0, &err);
    trace("people delete %s%s%s", (const char *)ctx, ok ? "" : ": ", ok ? "" : err.message);
}

void wish_regret(const char *name, bool endpoint)
{
    if (fault(FAULT_REGRET)) {
        struct rng *r = &deep->rng_fault[FAULT_REGRET];
        event_at(deep->now_us + between(r, 0, 300) * SEC, regret, xstrdup(name), endpoint);
    }
}

bool wish_act(int what, struct err *err)
{
    return what == 0 ? extend(err) : what == 1 ? end_endpoint(err) : end_volume(err);
}

struct campaign *wish_to_pause(struct rng *r)
{
    bool any = rng_chance(r, 0.25);
    for (size_t i = deep->jobs_n; i-- > 0 && !any;) {
        const struct job *j = &deep->jobs[i];
        for (int k = 0; k < deep->campaigns_n && j->ended == 0; k++) {
            if (deep->campaigns[k].id > 0 && deep->campaigns[k].id == j->campaign_id) {
                return &deep->campaigns[k];
            }
        }
    }
    return &deep->campaigns[rng_below(r, (uint64_t)deep->campaigns_n)];
}
