/* Page tokens: the numbers of a key in hex behind a check value, so that a forged token is
 * refused. */
#include "paging.h"
#include "common/hash.h"
#include "request.h"
#include "router.h"

#define TOKEN_NUMBERS_MAX 4
#define ORDER_SHOWN       40

/* order: as asked for; NULL: none was. */
static uint32_t token_check(const struct api_req *r, const char *order, const uint8_t *p, size_t n)
{
    AUTO_BUF struct buf b = BUF_INIT(4096);
    buf_add_cstr(&b, r->route->pattern);
    buf_add_cstr(&b, order != NULL ? order : "");
    buf_add(&b, p, n);
    return hash_crc32(b.p, b.n);
}

char *page_token_make(struct api_req *r, const int64_t *v, int n)
{
    ASSERT(n >= 1 && n <= TOKEN_NUMBERS_MAX);
    uint8_t raw[TOKEN_NUMBERS_MAX * 8 + 4];
    size_t raw_n = (size_t)n * 8;
    memcpy(raw, v, raw_n);
    uint32_t check = token_check(r, req_query(r, "order_by"), raw, raw_n);
    memcpy(raw + raw_n, &check, sizeof check);
    char hex[sizeof raw * 2 + 1];
    str_hex(raw, raw_n + sizeof check, hex);
    return arena_strndup(&r->arena, hex, strlen(hex));
}

/* What kind of token it is, when it is not one of this order. */
static bool other_token(const struct api_req *r, uint32_t check, const uint8_t *raw, size_t n,
                        struct err *err)
{
    static const char *const orders[] = {NULL, "created_at", "id", "cause"};
    for (size_t i = 0; i < 2 * ARRAY_LEN(orders); i++) {
        char name[ORDER_SHOWN];
        const char *order = orders[i / 2];
        (void)snprintf(name, sizeof name, "%s%s", order != NULL ? order : "", i % 2 ? " desc" : "");
        if (check == token_check(r, i == 0 ? NULL : name, raw, n)) {
            return err_set(err, ERR_MALFORMED,
                           "page_token is of %s%s: ask for the same order, or leave page_token "
                           "out and begin again",
                           order != NULL ? "order_by=" : "the order without order_by",
                           order != NULL ? name : "");
        }
    }
    return err_set(err, ERR_MALFORMED, "page_token belongs to another list");
}

bool page_is_down(const struct api_req *r, bool dflt)
{
    const char *order = req_query(r, "order_by");
    return order != NULL ? strchr(order, ' ') != NULL : dflt;
}

bool page_token_read(struct api_req *r, int64_t *v, int n, bool *ret_given, struct err *err)
{
    ASSERT(n >= 1 && n <= TOKEN_NUMBERS_MAX);
    const char *text = req_query(r, "page_token");
    *ret_given = text != NULL;
    if (text == NULL) {
        return true;
    }
    uint8_t raw[TOKEN_NUMBERS_MAX * 8 + 4];
    size_t raw_n = (size_t)n * 8;
    uint32_t check;
    if (!str_unhex(str_of(text), raw, raw_n + sizeof check)) {
        return err_set(err, ERR_MALFORMED, "page_token is not valid");
    }
    memcpy(&check, raw + raw_n, sizeof check);
    if (check != token_check(r, req_query(r, "order_by"), raw, raw_n)) {
        return other_token(r, check, raw, raw_n, err);
    }
    memcpy(v, raw, raw_n);
    return true;
}

static uint32_t text_check(const struct api_req *r, const char *scope, const char *text)
{
    AUTO_BUF struct buf b = BUF_INIT(8192);
    buf_addf(&b, "%s %s %s", r->route->pattern, scope, text);
    return hash_crc32(b.p, b.n);
}

char *page_text_make(struct api_req *r, const char *scope, const char *text)
{
    return arena_printf(&r->arena, "%08x.%s", text_check(r, scope, text), text);
}

bool page_text_read(struct api_req *r, const char *name, const char *scope, const char **ret_text,
                    struct err *err)
{
    const char *given = req_query(r, name);
    *ret_text = "";
    if (given == NULL) {
        return true;
    }
    uint8_t raw[4];
    size_t n = strlen(given);
    if (n > 9 && given[8] == '.' && str_unhex((struct str){given, 8}, raw, sizeof raw)) {
        uint32_t check =
            (uint32_t)raw[0] << 24 | (uint32_t)raw[1] << 16 | (uint32_t)raw[2] << 8 | raw[3];
        *ret_text = given + 9;
        if (check == text_check(r, scope, *ret_text)) {
            return true;
        }
    }
    return err_set(err, ERR_MALFORMED, "query parameter '%s' is not one that this list gave", name);
}
