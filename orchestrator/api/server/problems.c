/* The pages that problem+json names in `type`: what an error means and what to do. */
#include "problems.h"
#include "reply.h"
#include "routes.h"

static const struct problem {
    const char *meaning, *remedy;
} problems[] = {
#define PROBLEM(code, meaning, remedy) [ERR_##code] = {meaning, remedy},
#include "problems.def"
#undef PROBLEM
};
_Static_assert(ARRAY_LEN(problems) == ERR_CODE_COUNT, "a page for each code");

const char *problem_meaning(enum err_code code)
{
    return problems[code].meaning;
}

bool problem_page(struct api_req *r, struct err *err)
{
    for (int i = 1; i < ERR_CODE_COUNT; i++) {
        enum err_code code = (enum err_code)i;
        const char *name = err_code_name(code);
        if (str_eq_cstr(r->params[0], name)) {
            r->status = 200;
            r->content_type = "text/html; charset=utf-8";
            buf_addf(&r->out,
                     "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                     "<title>%s - drover</title>\n<h1>%s</h1>\n<p>%s</p>\n<p>%s</p>\n"
                     "<p>HTTP status %d; drover exits with %d. %s</p>\n</html>\n",
                     name, name, problems[i].meaning, problems[i].remedy, err_code_http(code),
                     err_code_exit(code),
                     err_code_retry(code) == RETRY_BACKOFF ? "The same request may succeed later."
                                                           : "The same request will fail again.");
            return true;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "there is no such error code");
}
