/* See regex.h. */
#include "common/regex.h"
#include "common/base.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

bool regex_check(const char *pattern, int *ret_groups, struct err *err)
{
    int code;
    PCRE2_SIZE at;
    uint32_t groups = 0;
    pcre2_code *re =
        pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern), PCRE2_UTF, &code, &at, NULL);
    if (re == NULL) {
        PCRE2_UCHAR text[160];
        (void)pcre2_get_error_message(code, text, sizeof text);
        return err_set(err, ERR_INVALID, "%s at character %zu", (const char *)text, at + 1);
    }
    (void)pcre2_pattern_info(re, PCRE2_INFO_CAPTURECOUNT, &groups);
    pcre2_code_free(re);
    *ret_groups = (int)groups;
    return true;
}
