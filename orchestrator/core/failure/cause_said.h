/* A text without what only stands around the words of a failure: colours and boxes of terminals,
 * progress that was written over, the code in the frames of a traceback, and the arguments of
 * command lines. Of the frames one thing is kept: in whose code the last exception was raised. */
#pragma once
#include "cause_fold.h"

#define CAUSE_RAISED_MAX 8

struct said {
    size_t n;
    size_t raised_n;
    struct str raised[CAUSE_RAISED_MAX]; /* the exceptions that end a traceback, each with its text;
                                            the last ones; borrowed from s */
    enum cause raised_in;                /* what the library of the innermost frame fails of */
    bool maps_rows;                      /* raised while a library went through the rows of data */
    bool asserts;                        /* the innermost frame is at an assertion */
    bool takes_field;                    /* it takes a field of a row of the data */
    char s[CAUSE_TEXT_MAX + 1];
};
/* The length of the colour of a terminal at the beginning of t, 0 when there is none. */
size_t cause_colour_n(struct str t);
/* At most the first CAUSE_TEXT_MAX characters are read. */
void cause_said(struct str text, struct said *ret);
