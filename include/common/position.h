/* A position in a text, and the faults found there. Lines and columns count from 1; 0 = unknown. */
#pragma once
#include "base.h"

struct position {
    int line;
    int column;
};
/* One fault of an input. All faults are collected and reported together. */
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
    int dropped; /* number of faults beyond FAULTS_MAX */
};
void faults_add(struct faults *f, struct position pos, const char *pointer, const char *code,
                const char *hint, const char *fmt, ...) PRINTF(6, 7);
