/* Parallel listings for the bridge; see object_listing.h. */
#include "object_listing.h"
#include "common/key_between.h"
#include "common/loop.h"
#include "core/leader/input_listing.h"
#include "core/leader/listing_pace.h"
#include "core/spec/spec_expand.h"
#include "shell.h"
#include <stdio.h>

#define KEY_SIZE 1025

enum range_state { RANGE_READY, RANGE_ASKED, RANGE_WAITS, RANGE_DONE };

/* The keys behind `after` as far as `until`. */
struct range {
    struct range *next; /* in the order of keys */
    struct object_listing *of;
    enum range_state state;
    char after[KEY_SIZE];
    char until[KEY_SIZE]; /* "": to the end */
    char *token;          /* of the next page; NULL: it begins behind `after` */
    int tries, empty_n;
    int pages_n; /* since it was divided */
    struct bridge_listing found;
};
struct object_listing {
    struct object_listing *next;
    struct controller *c;
    struct bridge_question q;
    struct s3_uri place;
    struct range *first;
    int ranges_n, asked_n;
    struct listing_pace pace;
    int64_t keys_n;
    struct bridge_progress progress;
    struct loop_timer *again; /* for ranges that wait */
    bool over;
    struct err why; /* when over */
};

static void advance(struct object_listing *l);

static void listing_free(struct object_listing *l)
{
    for (struct object_listing **at = &l->c->listings; *at != NULL; at = &(*at)->next) {
        if (*at == l) {
            *at = l->next;
            break;
        }
    }
    while (l->first != NULL) {
        struct range *r = l->first;
        l->first = r->next;
        bridge_listing_done(&r->found);
        free(r->token);
        free(r);
    }
    loop_timer_free(l->again);
    free(l);
}

static void give_up(struct object_listing *l, const struct err *why)
{
    if (!l->over) {
        l->over = true;
        l->why = *why;
        (void)err_wrap(&l->why, "cannot list '%s'", l->q.uri);
    }
}

static struct range *range_new(struct object_listing *l, const char *after, const char *until)
{
    struct range *r = xcalloc(1, sizeof *r);
    r->of = l;
    (void)snprintf(r->after, sizeof r->after, "%s", after);
    (void)snprintf(r->until, sizeof r->until, "%s", until);
    l->ranges_n++;
    return r;
}

/* Cut what is left of a range of which a page came. */
static void divide(struct object_listing *l, struct range *r)
{
    int parts = listing_pace_parts(&l->pace, l->ranges_n, l->asked_n, r->pages_n);
    char middle[KEY_SIZE];
    for (int i = 1; i < parts; i++) {
        if (!key_between(r->after, r->until, strlen(l->place.key), middle, sizeof middle)) {
            return;
        }
        struct range *rest = range_new(l, middle, r->until);
        rest->next = r->next;
        r->next = rest;
        (void)snprintf(r->until, sizeof r->until, "%s", middle);
        r->pages_n = 0;
    }
}

/* Keep an object that matches. False: the listing is over. */
static bool object_take(struct object_listing *l, struct range *r, const struct s3_object *o)
{
    struct err err = ERR_INIT;
    char uri[sizeof l->place.bucket + KEY_SIZE + 8];
    (void)snprintf(uri, sizeof uri, "s3://%s/%s", l->place.bucket, o->key);
    bool matches = spec_glob_match(l->q.uri, uri);
    if (listing_pace_full(++l->keys_n, l->q.max) ||
        (matches && !bridge_listing_add(&r->found, str_of(uri), o->size))) {
        (void)err_set(&err, ERR_LIMIT, "more than %lld objects, or names too long in all",
                      (long long)l->q.max);
        give_up(l, &err);
        return false;
    }
    l->progress.objects += matches;
    return true;
}

/* Keep what matches of a page. False: the listing is over. */
static bool page_take(struct object_listing *l, struct range *r, const struct s3_result *page)
{
    struct err err = ERR_INIT;
    const struct s3_listing *p = page->listing;
    size_t ours = 0;
    while (ours < p->n && listing_pace_within(r->until, p->objects[ours].key)) {
        if (!object_take(l, r, &p->objects[ours++])) {
            return false;
        }
    }
    enum listing_page_then then =
        listing_pace_page(p->n, ours, page->next_token != NULL, &r->empty_n);
    if (then == LISTING_PAGE_ENDLESS) {
        (void)err_set(&err, ERR_AWS, "it does not come to an end");
        give_up(l, &err);
        return false;
    }
    if (ours > 0) {
        (void)snprintf(r->after, sizeof r->after, "%s", p->objects[ours - 1].key);
    }
    free(r->token);
    r->token = page->next_token != NULL ? xstrdup(page->next_token) : NULL;
    r->tries = 0;
    r->pages_n++;
    l->progress.pages++;
    l->progress.problem[0] = '\0';
    listing_pace_came(&l->pace);
    r->state = then == LISTING_PAGE_MORE ? RANGE_READY : RANGE_DONE;
    return true;
}

/* True: somebody waits for the answer. Otherwise the listing is over. */
static bool wanted(struct object_listing *l)
{
    struct err nobody = ERR_INIT;
    if (!bridge_is_wanted(l->c->bridge, l->q.id)) {
        (void)err_set(&nobody, ERR_TIMEOUT, "nobody waits for it");
        give_up(l, &nobody);
    }
    return !l->over;
}

static void on_again(void *ctx)
{
    struct object_listing *l = ctx;
    (void)wanted(l);
    for (struct range *r = l->first; r != NULL; r = r->next) {
        r->state = r->state == RANGE_WAITS ? RANGE_READY : r->state;
    }
    advance(l);
}

/* A page that was not given: once more after a while, by fewer at once if we were too fast. */
static void page_refused(struct object_listing *l, struct range *r, const struct s3_result *page)
{
    const struct input_page_facts facts = {.outcome = page->outcome,
                                           .status = page->err.http_status,
                                           .tries = ++r->tries,
                                           .patient = l->q.patient};
    int64_t pause_us;
    if (l->c->listings_stop || !input_page_again(&facts, &l->c->state.rng, &pause_us)) {
        give_up(l, &page->err);
        return;
    }
    l->progress.refused++;
    input_listing_text(l->progress.problem, sizeof l->progress.problem, page->err.message);
    listing_pace_refused(&l->pace, page->outcome);
    r->state = RANGE_WAITS;
    if (!loop_timer_armed(l->again)) {
        loop_timer_set(l->again, pause_us);
    }
}

static void on_page(void *ctx, const struct s3_result *page)
{
    struct range *r = ctx;
    struct object_listing *l = r->of;
    l->asked_n--;
    r->state = RANGE_DONE;
    bool goes_on = !l->over && wanted(l);
    if (goes_on && page->outcome != AWS_OK) {
        page_refused(l, r, page);
    } else if (goes_on && page_take(l, r, page) && r->state == RANGE_READY) {
        divide(l, r);
    }
    if (goes_on) {
        bridge_tell(l->c->bridge, l->q.id, &l->progress);
    }
    advance(l);
}

static void answer(struct object_listing *l)
{
    struct bridge_reply reply = {0};
    for (struct range *r = l->first; r != NULL && !l->over; r = r->next) {
        if (!bridge_listing_move(&reply.listing, &r->found)) {
            struct err err = ERR_INIT;
            (void)err_set(&err, ERR_LIMIT, "too many objects, or names too long in all");
            give_up(l, &err);
        }
    }
    if (l->over) {
        bridge_refuse(l->c->bridge, l->q.id, &l->why);
    } else {
        bridge_answer(l->c->bridge, l->q.id, &reply);
    }
    bridge_reply_done(&reply);
}

/* Ask for what is ready; the answer when nothing is left. Frees l then. */
static void advance(struct object_listing *l)
{
    bool left = false;
    for (struct range *r = l->first; r != NULL && !l->over; r = r->next) {
        left |= r->state != RANGE_DONE;
        if (r->state == RANGE_READY && listing_pace_room(&l->pace, l->asked_n)) {
            r->state = RANGE_ASKED;
            l->asked_n++;
            s3_list_page(l->c->aws_plain, &l->place, r->after, r->token, on_page, r);
        }
    }
    if (l->asked_n == 0 && (l->over || !left)) {
        answer(l);
        listing_free(l);
    }
}

void object_listing_start(struct controller *c, const struct bridge_question *q)
{
    struct err err = ERR_INIT;
    const char *star = strchr(q->uri, '*');
    struct str prefix = {q->uri, star != NULL ? (size_t)(star - q->uri) : strlen(q->uri)};
    struct s3_uri place;
    if (!s3_parse_uri(prefix, &place, &err)) {
        bridge_refuse(c->bridge, q->id, &err);
        return;
    }
    struct object_listing *l = xcalloc(1, sizeof *l);
    *l = (struct object_listing){.next = c->listings, .c = c, .q = *q, .place = place};
    listing_pace_begin(&l->pace);
    l->again = loop_timer_new(c->loop, on_again, l);
    l->first = range_new(l, "", "");
    c->listings = l;
    advance(l);
}

void object_listings_stop(struct controller *c)
{
    c->listings_stop = true;
    for (struct object_listing *l = c->listings, *next; l != NULL; l = next) {
        struct err err = ERR_INIT;
        (void)err_set(&err, ERR_UNAVAILABLE, "the server is stopping");
        next = l->next;
        give_up(l, &err);
        advance(l);
    }
}
