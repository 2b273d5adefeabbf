/* One state machine over bytes for lines with quotes, one for JSON. The text of a record is
 * collected in one buffer; fields are offsets into it. */
#include "records.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "field_type.h"
#include "text_file.h"
#include <ctype.h>
#include <stdarg.h>

#define END (-1)

struct record_reader {
    struct text_file *file;
    char *name;
    enum records_format format;
    char separator; /* of csv and tsv */
    struct str block;
    size_t at;  /* in the block */
    int peeked; /* a byte read ahead; END: the end; -2: none */
    int64_t line;
    int64_t record_line;
    struct buf text; /* of the record; a field ends where the next begins */
    size_t *ends;    /* ends[fields_n] */
    size_t fields_n;
    char **names; /* names[names_n] */
    size_t names_n;
    json_t *object;
    bool in_list; /* json: after its first bracket */
    bool list_ended;
};

bool records_fault(const struct record_reader *r, struct err *err, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(err, ERR_INVALID, "'%s', line %lld: %s", r->name, (long long)r->record_line,
                   text);
}

/* The next byte, or END. */
static bool next_byte(struct record_reader *r, int *ret, struct err *err)
{
    if (r->peeked != -2) {
        *ret = r->peeked;
        r->peeked = -2;
        return true;
    }
    if (r->at >= r->block.n) {
        if (!text_file_next(r->file, &r->block, err)) {
            return false;
        }
        r->at = 0;
        if (r->block.n == 0) {
            *ret = END;
            return true;
        }
    }
    *ret = (unsigned char)r->block.p[r->at++];
    return true;
}

/* The next byte with every line end as \n; counts lines. */
static bool next_char(struct record_reader *r, int *ret, struct err *err)
{
    int c;
    if (!next_byte(r, &c, err)) {
        return false;
    }
    if (c == '\r') {
        int next;
        if (!next_byte(r, &next, err)) {
            return false;
        }
        if (next != '\n') {
            r->peeked = next;
        }
        c = '\n';
    }
    r->line += c == '\n' ? 1 : 0;
    *ret = c;
    return true;
}

static bool end_field(struct record_reader *r, struct err *err)
{
    if (r->fields_n == RECORDS_FIELDS_MAX) {
        return records_fault(r, err, "more than %d fields", RECORDS_FIELDS_MAX);
    }
    r->ends[r->fields_n++] = r->text.n;
    return true;
}

static bool check_size(const struct record_reader *r, const char *why, struct err *err)
{
    return !r->text.overflow ||
           records_fault(r, err, "a row of more than %zu MiB%s", RECORDS_BYTES_MAX >> 20, why);
}

/* The rest of a quoted field, after its first quote; *ret is the character after the last. */
static bool quoted(struct record_reader *r, int *ret, struct err *err)
{
    int64_t from = r->line;
    for (;;) {
        int c;
        if (!next_byte(r, &c, err)) { /* line ends stay as they are */
            return false;
        }
        if (c == END || r->text.overflow) {
            r->record_line = from;
            return c != END ? check_size(r, " (a quote that is not closed?)", err)
                            : records_fault(r, err, "a quote is not closed");
        }
        r->line += c == '\n' ? 1 : 0;
        if (c != '"') {
            buf_add_char(&r->text, (char)c);
            continue;
        }
        if (!next_char(r, &c, err)) {
            return false;
        }
        if (c != '"') {
            *ret = c;
            return c == END || c == '\n' || c == r->separator ||
                   records_fault(r, err, "text after a closing quote (field %zu)", r->fields_n + 1);
        }
        buf_add_char(&r->text, '"');
    }
}

/* Fields of one line that is not empty, from its first character. */
static bool read_fields(struct record_reader *r, int c, struct err *err)
{
    bool quotes = r->format == RECORDS_CSV || r->format == RECORDS_TSV;
    bool begins = true;
    for (;;) {
        if (quotes && begins && c == '"') {
            if (!quoted(r, &c, err)) {
                return false;
            }
        }
        begins = false;
        if (c == END || c == '\n' || (quotes && c == r->separator)) {
            if (!check_size(r, "", err) || !end_field(r, err)) {
                return false;
            }
            if (c == END || c == '\n') {
                return true;
            }
            begins = true;
        } else {
            buf_add_char(&r->text, (char)c);
        }
        if (!next_char(r, &c, err)) {
            return false;
        }
    }
}

static bool read_line(struct record_reader *r, bool *ret_end, struct err *err)
{
    int c;
    do {
        r->record_line = r->line;
        if (!next_char(r, &c, err)) {
            return false;
        }
    } while (c == '\n');
    *ret_end = c == END;
    buf_reset(&r->text);
    r->fields_n = 0;
    return c == END || read_fields(r, c, err);
}

/* Collect an object from its first brace to its last. */
static bool collect_object(struct record_reader *r, struct err *err)
{
    int depth = 1;
    bool in_text = false;
    bool escaped = false;
    buf_add_char(&r->text, '{');
    while (depth > 0) {
        int c;
        if (!next_char(r, &c, err)) {
            return false;
        }
        if (c == END || r->text.overflow) {
            return c != END ? check_size(r, "", err)
                            : records_fault(r, err, "the file ends within this object: truncated?");
        }
        buf_add_char(&r->text, (char)c);
        if (in_text) {
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if (c == '"') {
            in_text = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return true;
}

/* The next character that is no white space. */
static bool next_sign(struct record_reader *r, int *ret, struct err *err)
{
    do {
        r->record_line = r->line;
        if (!next_char(r, ret, err)) {
            return false;
        }
    } while (*ret == ' ' || *ret == '\t' || *ret == '\n');
    return true;
}

/* A number of the text that begins at i, as far as it goes. */
static struct str number_at(struct str text, size_t i)
{
    size_t n = 0;
    while (i + n < text.n && text.p[i + n] != '\0' && strchr("+-.0123456789eE", text.p[i + n])) {
        n++;
    }
    return (struct str){text.p + i, n};
}

static bool is_whole(struct str number)
{
    for (size_t i = number.p[0] == '-'; i < number.n; i++) {
        if (!isdigit((unsigned char)number.p[i])) {
            return false;
        }
    }
    return number.n > 1;
}

/* Copy the text with integers beyond int64, which the parser refuses, as reals: a csv's are, too.
 * False when there are none. */
static bool wide_as_reals(struct str text, struct buf *out)
{
    bool in_text = false;
    bool found = false;
    for (size_t i = 0; i < text.n; i++) {
        bool digit = isdigit((unsigned char)text.p[i]) != 0;
        if (!in_text && (digit || text.p[i] == '-')) {
            struct str number = number_at(text, i);
            int64_t v;
            bool wide = is_whole(number) && !field_int(number, &v);
            buf_add_str(out, number);
            buf_add_cstr(out, wide ? ".0" : "");
            found = found || wide;
            i += number.n - 1;
            continue;
        }
        buf_add_char(out, text.p[i]);
        if (in_text && text.p[i] == '\\' && i + 1 < text.n) {
            buf_add_char(out, text.p[++i]);
        } else if (text.p[i] == '"') {
            in_text = !in_text;
        }
    }
    return found && !out->overflow;
}

static bool parse_object(struct record_reader *r, struct err *err)
{
    struct err why = ERR_INIT;
    struct err again = ERR_INIT;
    AUTO_BUF struct buf reals = BUF_INIT(2 * RECORDS_BYTES_MAX);
    json_decref(r->object);
    r->object = NULL;
    if (!json_parse(buf_str(&r->text), RECORDS_BYTES_MAX, &r->object, &why) &&
        !(wide_as_reals(buf_str(&r->text), &reals) &&
          json_parse(buf_str(&reals), reals.max, &r->object, &again))) {
        return records_fault(r, err, "%s", why.message);
    }
    return json_is_object(r->object) || records_fault(r, err, "not an object");
}

#define LIST_HINT                                                                                  \
    "json is one list of objects, [{\"url\": ...}, ...]; one object per line is jsonl, and "       \
    "pandas "                                                                                      \
    "writes the list with orient='records'"

static bool list_begins(struct record_reader *r, struct err *err)
{
    int c;
    if (!next_sign(r, &c, err)) {
        return false;
    }
    if (c == END) {
        return err_set(err, ERR_INVALID, "'%s' is empty", r->name);
    }
    r->in_list = c == '[';
    return r->in_list || records_fault(r, err, "it begins with '%c': " LIST_HINT, c);
}

/* Before the first object only a closing bracket or an object, later also a comma. */
static bool read_element(struct record_reader *r, bool *ret_end, struct err *err)
{
    int c;
    bool first = !r->in_list;
    if (!r->in_list && !list_begins(r, err)) {
        return false;
    }
    *ret_end = r->list_ended;
    if (r->list_ended) {
        return true;
    }
    if (!next_sign(r, &c, err)) {
        return false;
    }
    if (c == ']') {
        r->list_ended = *ret_end = true;
        return next_sign(r, &c, err) && (c == END || records_fault(r, err, "text after the list"));
    }
    if (!first) {
        if (c != ',') {
            return c == END ? records_fault(r, err, "the list is not closed: truncated?")
                            : records_fault(r, err, "',' or ']' expected");
        }
        if (!next_sign(r, &c, err)) {
            return false;
        }
    }
    if (c != '{') {
        return c == END ? records_fault(r, err, "the list is not closed: truncated?")
                        : records_fault(r, err, "an object expected: " LIST_HINT);
    }
    buf_reset(&r->text);
    return collect_object(r, err) && parse_object(r, err);
}

static bool read_json_line(struct record_reader *r, bool *ret_end, struct err *err)
{
    do {
        if (!read_line(r, ret_end, err)) {
            return false;
        }
    } while (!*ret_end && str_trim(buf_str(&r->text)).n == 0);
    return *ret_end || parse_object(r, err);
}

bool records_next(struct record_reader *r, bool *ret_end, struct err *err)
{
    switch (r->format) {
    case RECORDS_JSON:
        return read_element(r, ret_end, err);
    case RECORDS_JSONL:
        return read_json_line(r, ret_end, err);
    case RECORDS_CSV:
    case RECORDS_TSV:
    case RECORDS_TXT:
        break;
    }
    if (!read_line(r, ret_end, err)) {
        return false;
    }
    return *ret_end || r->names_n == 0 || r->fields_n == r->names_n ||
           records_fault(r, err, "%zu fields, expected %zu as in the header", r->fields_n,
                         r->names_n);
}

static bool skip_mark(struct record_reader *r, struct err *err)
{
    if (!text_file_next(r->file, &r->block, err)) {
        return false;
    }
    if (str_starts(r->block, "\xef\xbb\xbf")) {
        r->at = 3;
    }
    if (str_starts(r->block, "\xff\xfe") || str_starts(r->block, "\xfe\xff")) {
        return err_set(err, ERR_INVALID, "'%s' is UTF-16 text: convert it to UTF-8", r->name);
    }
    return true;
}

static bool read_header(struct record_reader *r, struct err *err)
{
    bool end;
    if (r->format == RECORDS_TXT) {
        r->names = xcalloc(1, sizeof *r->names);
        r->names[r->names_n++] = xstrdup("url");
        return true;
    }
    if (!records_next(r, &end, err)) {
        return false;
    }
    if (end) {
        return err_set(err, ERR_INVALID, "'%s' is empty: a header was expected", r->name);
    }
    size_t n = r->fields_n;
    r->names = xcalloc(n, sizeof *r->names);
    for (size_t i = 0; i < n; i++) {
        struct str s = records_field(r, i);
        if (!str_is_utf8(s)) {
            return records_fault(r, err, "the name of column %zu is not UTF-8 text", i + 1);
        }
        r->names[i] = str_dup(s);
        r->names_n = i + 1;
    }
    return true;
}

bool records_open(const char *path, const char *name, enum records_format format, bool gzip,
                  struct record_reader **ret, struct err *err)
{
    struct record_reader *r = xcalloc(1, sizeof *r);
    r->name = xstrdup(name);
    r->format = format;
    r->separator = format == RECORDS_TSV ? '\t' : ',';
    r->peeked = -2;
    r->line = r->record_line = 1;
    buf_init(&r->text, RECORDS_BYTES_MAX);
    r->ends = xcalloc(RECORDS_FIELDS_MAX, sizeof *r->ends);
    bool json = format == RECORDS_JSON || format == RECORDS_JSONL;
    if (!text_file_open(path, name, gzip, &r->file, err) || !skip_mark(r, err) ||
        (!json && !read_header(r, err))) {
        records_free(r);
        return false;
    }
    *ret = r;
    return true;
}

void records_free(struct record_reader *r)
{
    if (r == NULL) {
        return;
    }
    text_file_free(r->file);
    for (size_t i = 0; i < r->names_n; i++) {
        free(r->names[i]);
    }
    json_decref(r->object);
    buf_done(&r->text);
    free(r->names);
    free(r->ends);
    free(r->name);
    free(r);
}

int64_t records_line(const struct record_reader *r)
{
    return r->record_line;
}

size_t records_names(const struct record_reader *r, char *const **ret)
{
    *ret = r->names;
    return r->names_n;
}

struct str records_field(const struct record_reader *r, size_t i)
{
    ASSERT(i < r->fields_n);
    size_t from = i > 0 ? r->ends[i - 1] : 0;
    return (struct str){buf_cstr(&r->text) + from, r->ends[i] - from};
}

const json_t *records_object(const struct record_reader *r)
{
    return r->object;
}
