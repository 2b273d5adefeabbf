/* See regex.h. */
#include "common/regex.h"
#include "common/base.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#define MATCH_STEPS_MAX 20000 /* about a millisecond */
#define MATCH_DEPTH_MAX 1000
#define MATCH_HEAP_KIB  1024

struct regex {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
};

static pcre2_code *compile(const char *pattern, struct err *err)
{
    int code;
    PCRE2_SIZE at;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern),
                                   PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &code, &at, NULL);
    if (re == NULL) {
        PCRE2_UCHAR text[160];
        (void)pcre2_get_error_message(code, text, sizeof text);
        (void)err_set(err, ERR_INVALID, "%s at character %zu", (const char *)text, at + 1);
    }
    return re;
}

bool regex_check(const char *pattern, int *ret_groups, struct err *err)
{
    uint32_t groups = 0;
    pcre2_code *re = compile(pattern, err);
    if (re == NULL) {
        return false;
    }
    (void)pcre2_pattern_info(re, PCRE2_INFO_CAPTURECOUNT, &groups);
    pcre2_code_free(re);
    *ret_groups = (int)groups;
    return true;
}

bool regex_new(const char *pattern, struct regex **ret, struct err *err)
{
    pcre2_code *code = compile(pattern, err);
    if (code == NULL) {
        return false;
    }
    struct regex *re = xcalloc(1, sizeof *re);
    re->code = code;
    re->data = pcre2_match_data_create_from_pattern(code, NULL);
    re->limits = pcre2_match_context_create(NULL);
    ASSERT(re->data != NULL);
    ASSERT(re->limits != NULL);
    (void)pcre2_set_match_limit(re->limits, MATCH_STEPS_MAX);
    (void)pcre2_set_depth_limit(re->limits, MATCH_DEPTH_MAX);
    (void)pcre2_set_heap_limit(re->limits, MATCH_HEAP_KIB);
    *ret = re;
    return true;
}

void regex_free(struct regex *re)
{
    if (re != NULL) {
        pcre2_match_context_free(re->limits);
        pcre2_match_data_free(re->data);
        pcre2_code_free(re->code);
        free(re);
    }
}

enum regex_result regex_first_group(struct regex *re, struct str text, struct str *ret)
{
    int n = pcre2_match(re->code, (PCRE2_SPTR)text.p, text.n, 0, 0, re->data, re->limits);
    if (n == PCRE2_ERROR_MATCHLIMIT || n == PCRE2_ERROR_DEPTHLIMIT || n == PCRE2_ERROR_HEAPLIMIT) {
        return REGEX_LIMIT;
    }
    if (n < 2) {
        return REGEX_NONE;
    }
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(re->data);
    if (at[2] == PCRE2_UNSET || at[3] < at[2]) {
        return REGEX_NONE;
    }
    *ret = (struct str){text.p + at[2], at[3] - at[2]};
    return REGEX_FOUND;
}
