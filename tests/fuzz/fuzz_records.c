/* Input files of strangers: csv, tsv, txt, json and jsonl, plain and gzip, of any bytes. Each
 * record has its fields and a line after the one before; a fault has a text; what csv and tsv yield
 * reads the same once written with quotes; the inferred types hold for every value. The first byte
 * says the format. */
#include "common/cleanup.h"
#include "common/json.h"
#include "download/text/field_type.h"
#include "download/text/records.h"
#include "fuzz.h"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES_MAX (1u << 20)
#define GZIP      0x80

static struct record_reader *open_bytes(struct str s, enum records_format format, bool gzip)
{
    char path[64];
    struct record_reader *r = NULL;
    struct err err = ERR_INIT;
    AUTO_FD int fd = memfd_create("records", MFD_CLOEXEC);
    ASSERT(fd >= 0);
    ASSERT(write(fd, s.p, s.n) == (ssize_t)s.n);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!records_open(path, "f", format, gzip, &r, &err)) {
        ASSERT(err.message[0] != '\0');
        return NULL;
    }
    return r;
}

static void add_quoted(struct buf *b, struct str s, bool first, char between)
{
    if (!first) {
        buf_add_char(b, between);
    }
    buf_add_char(b, '"');
    for (size_t i = 0; i < s.n; i++) {
        buf_add(b, s.p[i] == '"' ? "\"\"" : s.p + i, s.p[i] == '"' ? 2 : 1);
    }
    buf_add_char(b, '"');
}

/* The types of a column's values so far hold for this one. */
static void check_field(struct field_guess *g, struct str s)
{
    int64_t i;
    bool b;
    double d;
    field_guess_add(g, s);
    const char *type = field_guess_type(g);
    if (field_is_null(s)) {
        return;
    }
    ASSERT(strcmp(type, "NULL") != 0);
    ASSERT(strcmp(type, "BIGINT") != 0 || field_int(s, &i));
    ASSERT(strcmp(type, "BOOLEAN") != 0 || field_bool(s, &b));
    ASSERT(strcmp(type, "DOUBLE") != 0 || field_real(s, &d));
}

/* All records, each field in quotes; false: there was a fault. */
static bool read_fields(struct record_reader *r, char between, struct buf *out)
{
    struct err err = ERR_INIT;
    struct field_guess guess = {0};
    char *const *names;
    bool end = false;
    bool ok = true;
    int64_t line = 0;
    size_t n = records_names(r, &names);
    ASSERT(n >= 1);
    ASSERT(n <= RECORDS_FIELDS_MAX);
    for (size_t i = 0; i < n; i++) {
        add_quoted(out, str_of(names[i]), i == 0, between);
    }
    buf_add_char(out, '\n');
    while ((ok = records_next(r, &end, &err)) && !end) {
        ASSERT(records_line(r) > line);
        line = records_line(r);
        for (size_t i = 0; i < n; i++) {
            add_quoted(out, records_field(r, i), i == 0, between);
            check_field(&guess, records_field(r, i));
        }
        buf_add_char(out, '\n');
    }
    ASSERT(ok || err.message[0] != '\0');
    return ok;
}

static void read_objects(struct record_reader *r)
{
    struct err err = ERR_INIT;
    bool end = false;
    bool fits = true;
    char why[80];
    struct field_type *t = field_type_new();
    while (fits && records_next(r, &end, &err) && !end) {
        ASSERT(records_line(r) >= 1);
        ASSERT(json_is_object(records_object(r)));
        why[0] = '\0';
        fits = field_type_add(t, records_object(r), why);
        ASSERT(fits || why[0] != '\0');
        AUTO_BUF struct buf b = BUF_INIT(BYTES_MAX * 8);
        AUTO_BUF struct buf sql = BUF_INIT(BYTES_MAX * 8);
        if (fits) {
            AUTO_JSON json_t *again = NULL;
            field_type_sql(t, &sql);
            field_json(&b, t, records_object(r));
            ASSERT(sql.n > 0);
            ASSERT(json_parse(buf_str(&b), BYTES_MAX * 8, &again, NULL));
            ASSERT(json_is_object(again));
        }
    }
    field_type_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > BYTES_MAX) {
        return 0;
    }
    enum records_format format = (enum records_format)((data[0] & 0x7f) % (RECORDS_JSONL + 1));
    struct record_reader *r =
        open_bytes((struct str){(const char *)data + 1, size - 1}, format, (data[0] & GZIP) != 0);
    if (r == NULL) {
        return 0;
    }
    if (format == RECORDS_JSON || format == RECORDS_JSONL) {
        read_objects(r);
        records_free(r);
        return 0;
    }
    AUTO_BUF struct buf once = BUF_INIT(BYTES_MAX * 8);
    AUTO_BUF struct buf twice = BUF_INIT(BYTES_MAX * 8);
    char between = format == RECORDS_TSV ? '\t' : ',';
    bool whole = read_fields(r, between, &once);
    records_free(r);
    if (whole && format != RECORDS_TXT) {
        r = open_bytes(buf_str(&once), format, false);
        ASSERT(r != NULL);
        ASSERT(read_fields(r, between, &twice));
        records_free(r);
        ASSERT(str_eq(buf_str(&once), buf_str(&twice)));
    }
    return 0;
}
