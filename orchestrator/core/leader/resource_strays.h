/* Strays that are no jobs: endpoints, endpoint configs, models and file systems of this
 * installation that no row stands for. They are looked at now and then until people ask for their
 * end; then they are deleted, of one name the endpoint first, its config next, the model last,
 * each until it is proven absent. They hold no money: what one has cost is booked on a line of its
 * own when it is gone; while its price is not known that is an estimate. One that an intent of
 * ours has made its own since is left to that row. Pure; now_us is the wall clock, boot_us is
 * CLOCK_BOOTTIME. */
#pragma once
#include "common/aws_outcome.h"
#include "leader_state.h"

/* A row that is not over stands for the thing of this name; of a file system, for its id or the
 * token it was made with ("" of others). */
bool leader_has_resource(const struct leader_state *s, const char *name, const char *token);

/* At takeover, and again at any time: those that are not over. True: an end was asked for. */
bool leader_take_resource_strays(struct leader_state *s, const struct resource_stray_row *rows,
                                 size_t n);
/* Its row is committed. A name that is known is taken once. */
void leader_apply_resource_stray(struct leader_state *s, const struct resource_stray_row *row);
/* NULL: there is none. The pointer is valid until one is added or is over. */
struct live_resource_stray *leader_resource_stray(struct leader_state *s, const char *name);

enum resource_act {
    RESOURCE_ACT_NONE,
    RESOURCE_ACT_DESCRIBE,
    RESOURCE_ACT_CONFIG, /* describe r->config: of what type an endpoint is */
    RESOURCE_ACT_DELETE
};
/* The next call about one that has none under way, of its row's kind. *wake_us is lowered to when
 * to ask again. */
enum resource_act leader_resource_stray_next(const struct live_resource_stray *r, int64_t boot_us,
                                             int64_t *wake_us);

enum resource_word {
    RESOURCE_SAID_YES, /* there; its deletion has begun */
    RESOURCE_SAID_ABSENT,
    RESOURCE_SAID_NOTHING /* refused, busy, or nobody knows */
};
struct resource_fact { /* how a call was answered */
    enum resource_act act;
    enum resource_word said;
    const char *status;         /* YES of DESCRIBE; borrowed */
    usec_t since_us;            /* the same: of its last change, as AWS says; 0: not told */
    const char *config;         /* the same, of an endpoint; NULL: none. Borrowed */
    const char *instance_type;  /* YES of CONFIG; borrowed */
    musd_t price_musd_per_hour; /* of its row, or known since; 0: unknown */
};
enum resource_news {
    RESOURCE_AS_BEFORE,
    RESOURCE_MOVED,   /* `row` is to be written */
    RESOURCE_ADOPTED, /* a row of ours stands for it: its own goes */
    RESOURCE_OVER     /* `end` is to be written */
};
struct resource_writes {
    enum resource_news news;
    struct resource_stray_row row;
    struct resource_stray_end end; /* OVER; its texts are those of row */
    struct err error;              /* what could not be booked; it is tried again */
};
/* Whether a row of ours has taken it over; asked before each call. */
void leader_plan_resource_stray_owner(const struct leader_state *s,
                                      const struct live_resource_stray *r,
                                      struct resource_writes *ret);
/* What follows from an answer. */
void leader_plan_resource_stray_fact(struct live_resource_stray *r,
                                     const struct resource_fact *fact, usec_t now_us,
                                     int64_t boot_us, struct resource_writes *ret);
/* It is committed; after ADOPTED and OVER r is gone. */
void leader_apply_resource_stray_writes(struct leader_state *s, struct live_resource_stray *r,
                                        const struct resource_writes *w);
/* It was not: asked again after a pause. */
void leader_resource_stray_not_written(struct live_resource_stray *r, int64_t boot_us);
