/* JSON of any kind: what is read can be written and reads back the same; the writer's escapes too.
 */
#include "common/cleanup.h"
#include "common/json.h"
#include "fuzz.h"

#define TEXT_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_JSON json_t *v = NULL;
    struct str in = {(const char *)data, size};
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    json_escape(&text, in, size % 2 == 0);
    AUTO_JSON json_t *escaped = NULL;
    if (memchr(data, 0, size) == NULL && !text.overflow) {
        ASSERT(json_parse(buf_str(&text), TEXT_MAX, &escaped, NULL));
        ASSERT(!str_is_utf8(in) || str_eq_cstr(in, json_string_value(escaped)));
    }
    if (!json_parse(in, TEXT_MAX, &v, NULL)) {
        ASSERT(v == NULL);
        return 0;
    }
    static const char *const keys[] = {"a", "b", NULL};
    int64_t i = 7;
    bool b;
    const char *s;
    (void)!json_get_i64(v, "a", 0, 9, 7, &i, NULL);
    ASSERT(i >= 0 && i <= 9);
    (void)!json_get_bool(v, "a", true, &b, NULL);
    (void)!json_get_str(v, "a", "", &s, NULL);
    (void)!json_get_epoch(v, "a", 0, &i, NULL);
    (void)!json_only_keys(v, keys, NULL);
    AUTO_FREE char *again = json_text(v);
    AUTO_JSON json_t *back = NULL;
    ASSERT(json_parse(str_of(again), TEXT_MAX * 8, &back, NULL));
    ASSERT(json_equal(v, back));
    return 0;
}
