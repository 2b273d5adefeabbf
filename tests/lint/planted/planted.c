/* Faults that the tools of lint.py must find; this file is linked nowhere. */
#include <stdlib.h>
#include <string.h>

int planted_swapped(char *out, const char *in, size_t n);
int planted_freed_twice(size_t n);
int planted_past_the_end(void);

int planted_swapped(char *out, const char *in, size_t n)
{
    memset(out, sizeof out, 0); /* clang-tidy */
    return (int)n + in[0];
}

int planted_freed_twice(size_t n) /* both analyzers */
{
    char *p = malloc(n);
    if (p == NULL) {
        return 0;
    }
    p[0] = 1;
    free(p);
    free(p);
    return 1;
}

int planted_past_the_end(void)
{
    int few[4] = {0};
    for (int i = 0; i <= 4; i++) { /* cppcheck */
        few[i] = i;
    }
    return few[0];
}
