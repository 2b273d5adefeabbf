/* The listing of a stage's input, whose objects become its parts: which pages are asked for again,
 * and what becomes of a listing that goes on after its submit was answered. Pure. */
#pragma once
#include "common/aws_outcome.h"
#include "common/err.h"
#include "common/rng.h"
#include "common/units.h"

struct input_page_facts { /* a page that was not given */
    enum aws_outcome outcome;
    int status;   /* of the answer, 0: none */
    int tries;    /* of this page, this one included */
    bool patient; /* it is asked for as long as somebody waits */
};
/* True: once more after *ret_pause_us. */
bool input_page_again(const struct input_page_facts *f, struct rng *rng, int64_t *ret_pause_us);

/* Why a listing ended is for good: asked again it would end in the same way. */
bool input_listing_final(const struct err *why);
/* What a person does about a listing that ended for good; why NULL: no object matched. */
const char *input_listing_next_step(const struct err *why);
/* Copies what fits of a text into to[n], cut between two characters. */
void input_listing_text(char *to, size_t n, const char *text);
/* Parts of per_part objects each; per_part >= 1. */
int64_t input_listing_parts(int64_t objects, int per_part);

enum input_listing_answer {
    INPUT_LISTING_IDLE, /* not asked, or to be asked again */
    INPUT_LISTING_WAITS,
    INPUT_LISTING_CAME,
    INPUT_LISTING_REFUSED,
};
struct input_listing_facts {
    bool wanted; /* its campaign has not ended and is not being cancelled */
    bool room;   /* one more may be under way */
    enum input_listing_answer answer;
    int64_t objects;       /* CAME */
    const struct err *why; /* REFUSED */
    const char *uri;
};
enum input_listing_then {
    INPUT_LISTING_STAYS,  /* as it is */
    INPUT_LISTING_ASKS,   /* it begins */
    INPUT_LISTING_WRITES, /* its objects become parts, and the stage takes no more */
    INPUT_LISTING_FAILS,  /* with the problem: the campaign cannot run */
    INPUT_LISTING_AGAIN,  /* from its beginning, later; the problem says why */
    INPUT_LISTING_STOPS,  /* its campaign needs it no more */
};
/* problem[n]: for people, with the next step when it fails; "" otherwise. */
enum input_listing_then input_listing_next(const struct input_listing_facts *f, char *problem,
                                           size_t n);
