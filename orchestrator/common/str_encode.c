/* Encoders of str.h: percent-encoding, hexadecimal, base64. */
#include "common/buf.h"
#include "common/str.h"

static bool is_unreserved(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '~';
}

void str_url_encode(struct buf *out, struct str s, bool keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (is_unreserved(c) || (keep_slash && c == '/')) {
            buf_add_char(out, c);
        } else {
            uint8_t u = (uint8_t)c;
            buf_add(out, (const char[]){'%', digits[u >> 4], digits[u & 15]}, 3);
        }
    }
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool str_url_decode(struct buf *out, struct str s, bool plus_is_space)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '+' && plus_is_space) {
            c = ' ';
        } else if (c == '%') {
            int high = i + 2 < s.n ? hex_value(s.p[i + 1]) : -1;
            int low = i + 2 < s.n ? hex_value(s.p[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        buf_add_char(out, c);
    }
    return true;
}

void str_hex(const uint8_t *p, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    out[2 * n] = '\0';
}

bool str_unhex(struct str s, uint8_t *out, size_t out_n)
{
    if (s.n / 2 != out_n || s.n % 2 != 0) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (hex_value(s.p[i]) < 0) {
            return false;
        }
    }
    for (size_t i = 0; i < out_n; i++) {
        out[i] = (uint8_t)(hex_value(s.p[2 * i]) * 16 + hex_value(s.p[2 * i + 1]));
    }
    return true;
}

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void str_base64(struct buf *out, const void *p, size_t n)
{
    const uint8_t *in = p;
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t v = (uint32_t)in[i] << 16;
        v |= left > 1 ? (uint32_t)in[i + 1] << 8 : 0;
        v |= left > 2 ? (uint32_t)in[i + 2] : 0;
        char quad[4] = {base64_digits[v >> 18], base64_digits[v >> 12 & 63],
                        left > 1 ? base64_digits[v >> 6 & 63] : '=',
                        left > 2 ? base64_digits[v & 63] : '='};
        buf_add(out, quad, sizeof quad);
    }
}
