/* Listing the files of a copy. */
#include "file_list.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/s3.h"
#include "io/sink.h"
#include <ctype.h>
#include <fnmatch.h>

#define WIDTH_MAX 18

static struct str name_of(struct str uri)
{
    for (size_t i = 0; i < uri.n; i++) {
        if (uri.p[i] == '?' || uri.p[i] == '#') { /* the name is in the path */
            uri.n = str_starts(uri, "s3://") ? uri.n : i;
        }
    }
    size_t start = uri.n;
    while (start > 0 && uri.p[start - 1] != '/') {
        start--;
    }
    return (struct str){uri.p + start, uri.n - start};
}

static struct str stem_of(struct str name)
{
    for (size_t i = name.n; i > 1; i--) {
        if (name.p[i - 1] == '.') {
            return (struct str){name.p, i - 1};
        }
    }
    return name;
}

/* {part}, {part:5d} or {part:05d} */
static bool add_part(struct str format, int64_t part, struct buf *out)
{
    int64_t width = 0;
    bool zero = format.n > 0 && format.p[0] == '0';
    if (format.n > 0 && (format.p[format.n - 1] != 'd' ||
                         (format.n > 1 && !parse_i64((struct str){format.p, format.n - 1}, 0,
                                                     WIDTH_MAX, &width, NULL)))) {
        return false;
    }
    buf_addf(out, zero ? "%0*lld" : "%*lld", (int)width, (long long)part);
    return true;
}

static bool add_field(struct str field, struct str uri, int64_t part, struct buf *out,
                      struct err *err)
{
    struct str format = field;
    struct str name = str_split(&format, ':');
    bool ok = true;
    if (str_eq_cstr(name, "file_name") && format.n == 0) {
        buf_add_str(out, name_of(uri));
    } else if (str_eq_cstr(name, "stem") && format.n == 0) {
        buf_add_str(out, stem_of(name_of(uri)));
    } else if (str_eq_cstr(name, "part")) {
        ok = add_part(format, part, out);
    } else {
        ok = false;
    }
    return ok || err_set(err, ERR_INVALID,
                         "'{" STR_FMT "}' is not one of {file_name}, {stem}, {part:05d}",
                         (int)MIN(field.n, (size_t)60), field.p);
}

static bool expand(const char *template, struct str uri, int64_t part, struct buf *out,
                   struct err *err)
{
    for (const char *p = template; *p != '\0';) {
        size_t n = strcspn(p, "{}");
        buf_add(out, p, n);
        p += n;
        if (p[0] != '\0' && p[1] == p[0]) { /* {{ or }} */
            buf_add_char(out, p[0]);
            p += 2;
        } else if (p[0] == '{') {
            size_t len = strcspn(p + 1, "{}");
            if (p[1 + len] != '}') {
                return err_set(err, ERR_INVALID, "a brace is not closed");
            }
            if (!add_field((struct str){p + 1, len}, uri, part, out, err)) {
                return false;
            }
            p += len + 2;
        } else if (p[0] == '}') {
            buf_add_char(out, *p++);
        }
    }
    return !out->overflow || err_set(err, ERR_LIMIT, "the target's name is too long");
}

static bool split_target(struct str target, struct str *folder, struct str *name, struct err *err)
{
    *name = name_of(target);
    *folder = (struct str){target.p, target.n - name->n};
    if (name->n == 0 || str_eq_cstr(*name, ".") || str_eq_cstr(*name, "..") || name->p[0] == '_' ||
        name->n > SINK_NAME_BYTES_MAX) {
        return err_set(err, ERR_INVALID,
                       "'" STR_FMT "' must end in a name of 1 to %d bytes that does not begin "
                       "with '_'",
                       (int)MIN(target.n, (size_t)200), target.p, SINK_NAME_BYTES_MAX);
    }
    if (folder->n == 0 || str_eq_cstr(*folder, "s3://")) {
        return err_set(err, ERR_INVALID, "'" STR_FMT "' names no folder",
                       (int)MIN(target.n, (size_t)200), target.p);
    }
    return true;
}

bool file_list_check_target(const char *template, struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(COPY_URL_BYTES_MAX);
    struct str folder;
    struct str name;
    return expand(template, STR("s3://b/x.y"), 0, &b, err) &&
           split_target(buf_str(&b), &folder, &name, err);
}

char *file_list_fixed_folder(const char *to)
{
    size_t n = strcspn(to, "{");
    while (n > 0 && to[n - 1] != '/') {
        n--;
    }
    return xstrndup(to, n);
}

void file_list_done(struct file_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->files[i].from);
        free(l->files[i].folder);
        free(l->files[i].name);
    }
    free(l->files);
    *l = (struct file_list){0};
}

struct making {
    struct file_list *list;
    const char *to;
    int64_t part;
};

static bool add_file(struct making *m, struct str uri, int64_t size, struct err *err)
{
    AUTO_BUF struct buf target = BUF_INIT(COPY_URL_BYTES_MAX);
    struct str folder;
    struct str name;
    struct file_list *l = m->list;
    if (l->n == COPY_FILES_MAX) {
        return err_set(err, ERR_LIMIT, "more than %d files", COPY_FILES_MAX);
    }
    if (!expand(m->to, uri, m->part + (int64_t)l->n, &target, err) ||
        !split_target(buf_str(&target), &folder, &name, err)) {
        return err_wrap(err, "target of '" STR_FMT "'", (int)MIN(uri.n, (size_t)200), uri.p);
    }
    ARRAY_ROOM(l->files, l->n, l->cap_);
    l->files[l->n++] = (struct copy_file){
        .from = str_dup(uri), .folder = str_dup(folder), .name = str_dup(name), .size = size};
    return true;
}

/* [000-127]: digits, a hyphen, digits */
static bool range_of(struct str in, int64_t *ret_from, int64_t *ret_to, int *ret_width)
{
    struct str last = in;
    struct str first = str_split(&last, '-');
    bool digits = first.n > 0 && isdigit((unsigned char)first.p[0]) && last.n > 0 &&
                  isdigit((unsigned char)last.p[0]);
    *ret_width = first.n > 1 && first.p[0] == '0' ? (int)first.n : 0;
    return digits && first.n <= WIDTH_MAX && parse_i64(first, 0, INT32_MAX, ret_from, NULL) &&
           parse_i64(last, *ret_from, INT32_MAX, ret_to, NULL);
}

/* Spell out the first range of the URL and those after it. */
static bool add_urls(struct making *m, struct str url, int depth, struct err *err)
{
    const char *open = memchr(url.p, '[', url.n);
    const char *close = open == NULL ? NULL : memchr(open, ']', (size_t)(url.p + url.n - open));
    int64_t from;
    int64_t to;
    int width;
    if (open == NULL) {
        return add_file(m, url, -1, err);
    }
    if (close == NULL || depth == 4 ||
        !range_of((struct str){open + 1, (size_t)(close - open - 1)}, &from, &to, &width)) {
        return err_set(err, ERR_INVALID, "'" STR_FMT "' has a range that is not like [000-127]",
                       (int)MIN(url.n, (size_t)200), url.p);
    }
    for (int64_t i = from; i <= to; i++) {
        AUTO_BUF struct buf b = BUF_INIT(COPY_URL_BYTES_MAX);
        buf_addf(&b, "%.*s%0*lld%.*s", (int)(open - url.p), url.p, width, (long long)i,
                 (int)(url.p + url.n - close - 1), close + 1);
        if (b.overflow) {
            return err_set(err, ERR_LIMIT, "a source is longer than %d bytes", COPY_URL_BYTES_MAX);
        }
        if (!add_urls(m, buf_str(&b), depth + 1, err)) {
            return false;
        }
    }
    return true;
}

static bool add_glob(struct making *m, struct remote *r, const char *uri, struct err *err)
{
    struct s3_uri glob;
    struct s3_uri prefix;
    struct remote_names names = {0};
    if (!s3_parse_uri(str_of(uri), &glob, err)) {
        return false;
    }
    prefix = glob;
    prefix.key[strcspn(prefix.key, "*?")] = '\0';
    bool ok = remote_list(r, &prefix, COPY_FILES_MAX, &names, err);
    size_t before = m->list->n;
    for (size_t i = 0; ok && i < names.n; i++) {
        const struct remote_name *o = &names.at[i];
        if (fnmatch(glob.key, o->key, FNM_PATHNAME) == 0) {
            AUTO_FREE char *one = xasprintf("s3://%s/%s", glob.bucket, o->key);
            ok = add_file(m, str_of(one), o->size, err);
        }
    }
    remote_names_done(&names);
    if (ok && m->list->n == before) {
        return err_set(err, ERR_NOT_FOUND, "no object matches '%.200s'", uri);
    }
    return ok;
}

static bool add_source(struct making *m, struct remote *r, struct str word, struct err *err)
{
    AUTO_FREE char *uri = str_dup(word);
    struct s3_uri key;
    if (str_starts(word, "https://") || str_starts(word, "http://")) {
        return add_urls(m, word, 0, err);
    }
    if (!str_starts(word, "s3://")) {
        return err_set(err, ERR_INVALID, "'%.200s' is no https:// URL and not in S3", uri);
    }
    if (strpbrk(uri, "*?") != NULL) {
        return add_glob(m, r, uri, err);
    }
    if (!s3_parse_uri(word, &key, err) || key.key[0] == '\0' || str_ends(word, "/")) {
        return err_set(err, ERR_INVALID, "'%.200s' names no object: add a key or *", uri);
    }
    return add_file(m, word, -1, err);
}

static int target_cmp(const void *a, const void *b)
{
    const struct copy_file *const *x = a;
    const struct copy_file *const *y = b;
    int c = strcmp((*x)->folder, (*y)->folder);
    return c != 0 ? c : strcmp((*x)->name, (*y)->name);
}

static bool check_targets(const struct file_list *l, struct err *err)
{
    AUTO_FREE const struct copy_file **by = xcalloc(l->n + 1, sizeof *by);
    bool ok = true;
    for (size_t i = 0; i < l->n; i++) {
        by[i] = &l->files[i];
    }
    qsort(by, l->n, sizeof *by, target_cmp);
    for (size_t i = 1; ok && i < l->n; i++) {
        if (target_cmp(&by[i - 1], &by[i]) == 0) {
            ok = err_set(err, ERR_INVALID, "'%.150s' and '%.150s' would both become '%.150s'",
                         by[i - 1]->from, by[i]->from, by[i]->name);
        }
    }
    return ok;
}

bool file_list_make(struct remote *r, const char *from, const char *to, int64_t part,
                    struct file_list *ret, struct err *err)
{
    struct making m = {.list = ret, .to = to, .part = part};
    static const char blank[] = " \t\r\n";
    *ret = (struct file_list){0};
    for (const char *p = from + strspn(from, blank); *p != '\0'; p += strspn(p, blank)) {
        struct str word = {p, strcspn(p, blank)};
        if (word.n > COPY_URL_BYTES_MAX) {
            return err_set(err, ERR_LIMIT, "a source is longer than %d bytes", COPY_URL_BYTES_MAX);
        }
        if (!add_source(&m, r, word, err)) {
            return false;
        }
        p += word.n;
    }
    return check_targets(ret, err);
}

/* The line's sum when it is of this name; 64 or 32 hex digits. */
static bool sum_of(struct str line, struct str name, char ret[static COPY_SUM_HEX_N])
{
    struct str sum = {line.p, 0};
    while (sum.n < line.n && isxdigit((unsigned char)line.p[sum.n])) {
        sum.n++;
    }
    struct str rest = str_trim((struct str){line.p + sum.n, line.n - sum.n});
    if (rest.n > 0 && rest.p[0] == '*') {
        rest = (struct str){rest.p + 1, rest.n - 1};
    }
    if ((sum.n != 64 && sum.n != 32) || !str_eq(name_of(rest), name)) {
        return false;
    }
    for (size_t i = 0; i < sum.n; i++) {
        ret[i] = (char)tolower((unsigned char)sum.p[i]);
    }
    ret[sum.n] = '\0';
    return true;
}

/* Lines mostly come in the order of the files: each search begins after the last hit. */
bool file_list_checksums(struct file_list *l, struct str text, struct err *err)
{
    struct str rest = text;
    for (size_t i = 0; i < l->n; i++) {
        struct copy_file *f = &l->files[i];
        struct str name = name_of(str_of(f->from));
        size_t left = text.n; /* to read until every line was seen */
        bool found = false;
        while (left > 0 && !found) {
            rest = rest.n == 0 ? text : rest;
            size_t before = rest.n;
            struct str line = str_split(&rest, '\n');
            found = sum_of(line, name, f->want_sum);
            left -= MIN(left, before - rest.n);
        }
        if (!found) {
            return err_set(err, ERR_INVALID, "the checksums have no line for '" STR_FMT "'",
                           STR_ARG(name));
        }
    }
    return true;
}
