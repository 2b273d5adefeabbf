/* The campaign files of deploy/examples, as they are in the program. */
#pragma once
#include <stddef.h>

struct template
{
    const char *name, *summary, *text;
};
const struct template *templates_all(size_t *ret_n);
