/* See mail_record.h. */
#include "mail_record.h"
#include "common/cleanup.h"
#include "common/http.h"
#include <stdlib.h>

static void copy(struct mail_addresses *ret, const char *address)
{
    (void)snprintf(ret->text[ret->n++], sizeof ret->text[0], "%s", address);
}

void mail_addresses_left(const struct mail_addresses *all, const json_t *record,
                         struct mail_addresses *ret)
{
    ret->n = 0;
    for (size_t i = 0; i < all->n; i++) {
        if (json_object_get(record, all->text[i]) == NULL) {
            copy(ret, all->text[i]);
        }
    }
}

/* The last line of the next answer; empty: there is none. */
static struct str next_answer(struct str *said)
{
    while (said->n > 0) {
        struct str line = str_trim(str_split(said, '\n'));
        if (line.n >= 3 && (line.n == 3 || line.p[3] != '-')) {
            return line;
        }
    }
    return STR("");
}

static int code_of(struct str answer)
{
    return answer.n < 3 ? 0
                        : (answer.p[0] - '0') * 100 + (answer.p[1] - '0') * 10 + answer.p[2] - '0';
}

/* "answered 550: nobody of that name". */
static char *words(struct str answer)
{
    if (answer.n < 5) {
        return xasprintf("answered %d", code_of(answer));
    }
    return xasprintf("answered %d: %.*s", code_of(answer),
                     (int)MIN(answer.n - 4, HTTP_MAIL_LINE_MAX), answer.p + 4);
}

static void tell(struct buf *problem, const char *address, const char *why)
{
    buf_addf(problem, "%s%s %s", problem->n > 0 ? "; " : "", address, why);
}

/* Of those refused for good, now or before. */
static void tell_refused(json_t *record, struct buf *problem)
{
    const char *address;
    json_t *v;
    json_object_foreach(record, address, v)
    {
        const char *why = json_string_value(v);
        if (why != NULL && why[0] != '\0') {
            tell(problem, address, why);
        }
    }
}

bool mail_record_try(json_t *record, const struct mail_addresses *to, const struct mail_try *t,
                     struct buf *problem)
{
    struct str answers[MAIL_ADDRESSES_MAX], said = t->said, last = STR("");
    const size_t n = to->n;
    int mail = code_of(next_answer(&said));
    for (size_t i = 0; i < n; i++) {
        answers[i] = next_answer(&said);
        last = answers[i];
    }
    if (mail < 200 || mail >= 300 || last.n == 0) {
        return false;
    }
    for (struct str a = next_answer(&said); a.n > 0; a = next_answer(&said)) {
        last = code_of(a) == t->status ? a : last; /* an answer to QUIT may follow */
    }
    for (size_t i = 0; i < n; i++) {
        bool taken = code_of(answers[i]) < 400;
        struct str why = taken ? last : answers[i];
        AUTO_FREE char *text = words(why);
        if (taken && t->taken) {
            (void)json_object_set_new(record, to->text[i], json_string(""));
        } else if (code_of(why) >= 500) {
            (void)json_object_set_new(record, to->text[i], json_string(text));
        } else if (taken && code_of(why) < 400) { /* the connection ended */
            tell(problem, to->text[i], "was taken, but the mail was not");
        } else {
            tell(problem, to->text[i], text);
        }
    }
    tell_refused(record, problem);
    return true;
}

bool mail_record_has(json_t *record)
{
    const char *address;
    json_t *v;
    json_object_foreach(record, address, v)
    {
        if (json_string_length(v) == 0) {
            return true;
        }
    }
    return false;
}
