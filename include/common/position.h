/* Where in a text a value stands: for errors that point. Lines and columns count from 1; 0 =
 * unknown. */
#pragma once
#include "base.h"

struct position {
    int line;
    int column;
};
/* One fault of an input: all are collected, none hides another. */
struct fault {
    struct position pos;
    char pointer[160]; /* "stages.train.distribution" */
    char code[32];     /* "unknown_key", "type", "range", "required", ... */
    char message[320];
    char hint[256]; /* what to write instead; "" when none */
};
#define FAULTS_MAX 64
struct faults {
    struct fault at[FAULTS_MAX];
    int n;
    int dropped; /* beyond FAULTS_MAX */
};
void faults_add(struct faults *f, struct position pos, const char *pointer, const char *code,
                const char *hint, const char *fmt, ...) PRINTF(6, 7);
