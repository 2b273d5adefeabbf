/* The sweep for what costs money and is no job: endpoints, endpoint configs, models and file
 * systems that read like ours and that no row stands for, because a database that failed over or
 * was restored has lost their rows. At the start of a leader and rarely after that the four kinds
 * are listed one after the other. Ours is what carries our drover-install tag: the answer of FSx
 * has it, SageMaker is asked for it name by name. What is ours is described, so that nothing is
 * held that was gone by then, and becomes a stray (resource_strays.h). A name of hosting is one
 * thing: its endpoint, or of that what is left. Pure; boot_us is CLOCK_BOOTTIME. */
#pragma once
#include "common/aws_outcome.h"
#include "core/capacity/endpoint_report.h"
#include "core/capacity/filesystem_report.h"
#include "job_list.h"
#include "resource_strays.h"
#include "tx_error.h"

#define RESOURCE_SWEEP_US  (600 * USEC_PER_SEC) /* from one to the next */
#define RESOURCE_FOUND_MAX 1000                 /* of one; what is beyond waits for the next */

struct resource_found { /* a thing that nobody has decided on */
    enum resource_kind kind;
    char name[64], arn[257], token[64];
    bool ours;                         /* its tag says so */
    bool seen;                         /* a Describe has shown it: endpoint or filesystem */
    struct endpoint_description shown; /* of hosting; its instance type once its config is read */
    struct filesystem_description fs;  /* as listed, then as seen */
    int failures;
    int64_t next_us;
};
struct resource_sweep {      /* all zero at first: it begins at once */
    int64_t due_us;          /* the next one begins */
    enum resource_kind list; /* asked for next; COUNT: none before due_us */
    int failures;            /* of this list, in a row */
    int64_t list_us;
    struct resource_found *found;
    size_t n;
    struct name_set others; /* somebody else's: asked about once a leader */
};
/* Frees what it holds; all zero again. */
void resource_sweep_clear(struct resource_sweep *w);

/* The kind that is to be listed now; COUNT: none, and *wake_us is lowered to when to ask again. */
enum resource_kind resource_sweep_list_due(struct resource_sweep *w, int64_t boot_us,
                                           int64_t *wake_us);
/* The kind asked for was listed: what reads like ours and has no row is to be decided on. */
void resource_sweep_hosting(struct resource_sweep *w, const struct leader_state *s,
                            const char *job_prefix, const struct hosting_summary *rows, size_t n,
                            int64_t boot_us);
void resource_sweep_filesystems(struct resource_sweep *w, const struct leader_state *s,
                                const struct filesystem_description *rows, size_t n,
                                int64_t boot_us);
/* It was not: a refusal leaves that kind to the next sweep, anything else is tried again. */
void resource_sweep_unlisted(struct resource_sweep *w, const struct aws_failure *f,
                             int64_t boot_us);

/* The first thing that is due; w->n: none, and *wake_us is lowered to when one is. */
size_t resource_sweep_due(const struct resource_sweep *w, int64_t boot_us, int64_t *wake_us);
enum resource_ask {
    RESOURCE_ASK_TAG,
    RESOURCE_ASK_DESCRIBE,
    RESOURCE_ASK_CONFIG /* of an endpoint: what it runs on */
};
enum resource_ask resource_sweep_question(const struct resource_found *u);

enum resource_then {
    RESOURCE_ON,      /* the next question */
    RESOURCE_LATER,   /* asked again after a back-off */
    RESOURCE_DECIDED, /* gone, going, ours by a row, or not to be told: the next sweep asks again */
    RESOURCE_FOREIGN, /* its tag was read */
    RESOURCE_HOLD,    /* as a stray */
    RESOURCE_STOP     /* the leadership is lost */
};
/* f NULL: the tag has this value, "" when there is none. */
enum resource_then resource_sweep_tag(struct resource_found *u, const char *value,
                                      const char *install_id, const struct aws_failure *f);
/* d NULL: there is no such thing, or f says why nobody knows. */
enum resource_then resource_sweep_described(struct resource_found *u,
                                            const struct endpoint_description *d,
                                            const struct aws_failure *f);
enum resource_then resource_sweep_filesystem(struct resource_found *u,
                                             const struct filesystem_description *d,
                                             const struct aws_failure *f);
/* The same of the config of an endpoint, without which its price is not known. */
enum resource_then resource_sweep_config(struct resource_found *u,
                                         const struct endpoint_description *d,
                                         const struct aws_failure *f);
/* Its row as a stray; one that is a stray with less of it left becomes whole again. False: a row
 * of ours stands for it by now, or a stray. */
bool resource_sweep_row(const struct leader_state *s, const struct resource_found *u,
                        struct resource_stray_row *ret);
/* The price of a stray: as it was found, else today's; 0: not known. */
musd_t resource_sweep_price(const struct leader_state *s, const struct resource_stray_row *row);
/* The same once an answer came, which may tell on what an endpoint runs. */
musd_t resource_sweep_price_told(const struct leader_state *s, const struct resource_stray_row *row,
                                 const struct resource_fact *fact);
/* The transaction of RESOURCE_HOLD. */
enum resource_then resource_sweep_held(enum tx_meaning meaning);
/* What follows for thing `at`. */
void resource_sweep_apply(struct resource_sweep *w, size_t at, enum resource_then then,
                          int64_t boot_us);
