/* A campaign file parsed in a test, with what it was answered. */
#pragma once
#include "common/buf.h"
#include "common/cleanup.h"
#include "core/spec/spec.h"
#include "core/spec/spec_parse.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define ROLE "arn:aws:iam::111122223333:role/sm"
UNUSED static const struct spec_defaults defaults = {
    .role = ROLE, .worker_image = "registry/drover-worker:1", .bucket = "acme"};

/* Of an installation by deploy/first-campaign.md: the worker's examples name neither. */
UNUSED static const struct spec_defaults installed = {
    .role = "arn:aws:iam::111122223333:role/drover-worker",
    .worker_image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/drover-worker@sha256:"
                    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};

struct parsed {
    struct arena arena;
    struct faults faults;
    struct spec *spec;
    bool good;
};

UNUSED static struct parsed *parse_with(const char *text, const struct spec_defaults *d)
{
    struct parsed *p = xcalloc(1, sizeof *p);
    arena_init(&p->arena, SPEC_ARENA_BYTES);
    p->good = spec_parse(str_of(text), d, &p->arena, &p->spec, &p->faults);
    assert_int_equal(p->good, p->faults.n == 0);
    return p;
}

UNUSED static struct parsed *parse(const char *text)
{
    return parse_with(text, &defaults);
}

UNUSED static void parsed_free(struct parsed *p)
{
    arena_done(&p->arena);
    free(p);
}

UNUSED static void show(const struct faults *f)
{
    for (int i = 0; i < f->n; i++) {
        (void)printf("# %d:%d %s [%s] %s | %s\n", f->at[i].pos.line, f->at[i].pos.column,
                     f->at[i].pointer, f->at[i].code, f->at[i].message, f->at[i].hint);
    }
}

UNUSED static char *file_text(const char *path)
{
    AUTO_FILE FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *text = xcalloc(1, 65536);
    assert_true(fread(text, 1, 65535, f) > 0);
    return text;
}
