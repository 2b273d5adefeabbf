/* What it costs to classify a failure text: the corpora, many times over. Prints a JSON line. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "core/failure/cause.h"
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS    200
#define TEXTS_MAX 2000

static size_t read_texts(const char *path, int column, char **texts, size_t n)
{
    char line[8192];
    AUTO_FILE FILE *f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL && n < TEXTS_MAX) {
        struct str rest = str_trim(str_of(line));
        struct str field = STR("");
        for (int i = 0; rest.n > 0 && line[0] != '#' && i <= column; i++) {
            field = str_split(&rest, '\t');
        }
        if (field.n > 0) {
            texts[n++] = str_dup(field);
        }
    }
    return n;
}

int main(void)
{
    static char *texts[TEXTS_MAX];
    size_t n = read_texts("tests/vectors/failures.tsv", 4, texts, 0);
    n = read_texts("tests/vectors/causes.tsv", 1, texts, n);
    n = read_texts("tests/vectors/causes_found.tsv", 1, texts, n);
    int known = 0;
    int64_t began_us = clock_mono_us();
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < n; i++) {
            known += cause_of_job(JOB_END_FAILED, str_of(texts[i]), false) != CAUSE_UNKNOWN;
        }
    }
    double each_us = (double)(clock_mono_us() - began_us) / ROUNDS / (double)n;
    (void)printf("{\"name\":\"cause_of_text\",\"value\":%.3f,\"unit\":\"us\",\"n\":%zu,\"note\":"
                 "\"a failure text classified; %d of them known\"}\n",
                 each_us, n, known / ROUNDS);
    for (size_t i = 0; i < n; i++) {
        free(texts[i]);
    }
    return n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
