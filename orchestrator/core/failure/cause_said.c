/* A text is read line by line, since what stands around its words is told apart by lines: the
 * frames of a traceback from the exception behind them, what informs from what complains. */
#include "cause_said.h"
#include <ctype.h>
#include <strings.h>

/* A frame that was just read: lines with the same mark that are further indented are its code. */
struct code_frame {
    bool open;
    size_t mark_n, indent;
    char mark[64];
};

static const struct {
    const char *part;
    enum cause cause;
} modules[] = {
#define X(c, part) {part, CAUSE_##c},
#include "cause_module.def"
#undef X
};

static enum cause cause_of_module(struct str path)
{
    char lower[256] = "/"; /* "mmdet/datasets/coco.py": the root was cut off */
    size_t n = path.n > 0 && path.p[0] != '/';
    size_t room = sizeof lower - 1 - n;
    size_t skip = path.n > room ? path.n - room : 0;
    for (size_t i = skip; i < path.n; i++) {
        lower[n++] = (char)tolower((unsigned char)path.p[i]);
    }
    lower[n] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
        if (strstr(lower, modules[i].part) != NULL) {
            return modules[i].cause;
        }
    }
    return CAUSE_UNKNOWN;
}

/* "pdfminer.pdfparser.PDFSyntaxError: ...": the module that an exception's class is of. */
static enum cause cause_of_class(struct str line)
{
    char path[128];
    size_t n = 0;
    size_t last = 0;
    for (; n < line.n && n < sizeof path && (cause_is_word(line.p[n]) || line.p[n] == '.'); n++) {
        path[n] = line.p[n] == '.' ? '/' : line.p[n];
        last = line.p[n] == '.' ? n + 1 : last;
    }
    bool told = n == line.n || line.p[n] == ':';
    return told && last > 0 && last < n && isupper((unsigned char)path[last])
               ? cause_of_module((struct str){path, n})
               : CAUSE_UNKNOWN;
}

static bool is_row_mapper(struct str path)
{
    static const char *const parts[] = {"/datasets/arrow_dataset.py",
                                        "/datasets/iterable_dataset.py",
                                        "/webdataset/",
                                        "/pandas/core/apply.py",
                                        "/ray/data/",
                                        "pandas/_libs/hashtable",
                                        "/pandas/core/indexes/"};
    return cause_has_part(path, parts, ARRAY_LEN(parts));
}

/* "category = anno['category']", "a, b = line.split(',')": a field of a row of the data. */
static bool takes_field(struct str code)
{
    static const char *const rows[] = {"anno['",
                                       "ann['",
                                       "annotation['",
                                       "row['",
                                       "rec['",
                                       "record['",
                                       "sample['",
                                       "example['",
                                       "entry['",
                                       "img_ann['",
                                       "info['",
                                       "item['",
                                       "sensor_data[",
                                       "anno[\"",
                                       "row[\"",
                                       "record[\"",
                                       "sample[\"",
                                       "example[\"",
                                       "line.split(",
                                       "line.strip().split(",
                                       "line.rstrip().split("};
    return cause_has_part(code, rows, ARRAY_LEN(rows));
}

/* "ESC[31m", also with its ESC written out. */
size_t cause_colour_n(struct str t)
{
    static const char *const escapes[] = {"\x1b[", "#033[", "\\033[", "\\x1b[", "\\u001b[", "^[["};
    for (size_t i = 0; i < ARRAY_LEN(escapes); i++) {
        size_t n = strlen(escapes[i]);
        if (t.n > n && t.p[0] == escapes[i][0] && str_starts(t, escapes[i])) {
            while (n < t.n && (isdigit((unsigned char)t.p[n]) || t.p[n] == ';' || t.p[n] == '?')) {
                n++;
            }
            return n < t.n && isalpha((unsigned char)t.p[n]) ? n + 1 : 0;
        }
    }
    return 0;
}

/* U+2500 to U+259F: boxes and bars. */
static bool is_box(struct str t)
{
    return t.n >= 3 && (unsigned char)t.p[0] == 0xe2 && (unsigned char)t.p[1] >= 0x94 &&
           (unsigned char)t.p[1] <= 0x96;
}

/* The length of a command's list of words, "['python', '-u', 'train.py']"; 0 when it is not one. */
static size_t argv_n(struct str t)
{
    if (t.n < 4 || t.p[0] != '[' || t.p[1] != '\'') {
        return 0;
    }
    ptrdiff_t end = str_find(t, STR("']"));
    struct str list = {t.p, end > 0 ? (size_t)end + 2 : t.n};
    return str_find(list, STR("', '-")) > 0 || str_find(list, STR("/bin/")) > 0 ? list.n : 0;
}

/* Command "python train.py --epochs 3": up to the quote that ends it. */
static size_t command_n(struct str t)
{
    static const char mark[] = "Command \"";
    size_t n = sizeof mark - 1;
    if (!str_starts(t, mark)) {
        return 0;
    }
    for (; n < t.n; n++) {
        if (t.p[n] == '"' && (n + 1 == t.n || strchr(" ,", t.p[n + 1]) != NULL)) {
            return n + 1;
        }
    }
    return t.n;
}

/* One line without colours, bars and command lines, behind what is there. */
static void put_line(struct said *s, struct str t)
{
    while (t.n > 0 && s->n < CAUSE_TEXT_MAX) {
        if (strchr("\x1b#\\^[C\xe2", t.p[0]) == NULL) { /* none of these begins so */
            s->s[s->n++] = *t.p++;
            t.n--;
            continue;
        }
        size_t skip = cause_colour_n(t);
        skip = skip > 0 ? skip : argv_n(t);
        skip = skip > 0 ? skip : command_n(t);
        bool box = skip == 0 && is_box(t);
        if (skip == 0) {
            s->s[s->n++] = box ? ' ' : t.p[0];
            skip = box ? 3 : 1;
        }
        t.p += skip;
        t.n -= skip;
    }
    if (s->n < CAUSE_TEXT_MAX) {
        s->s[s->n++] = '\n';
    }
}

/* A line of a log that only informs: it tells neither of trouble nor of the end of the job. */
static bool only_informs(struct str t)
{
    static const char *const levels[] = {" INFO ",  "[INFO]",  ":INFO]",     "| INFO |",
                                         " DEBUG ", "[DEBUG]", "level=info", "NCCL INFO "};
    static const char *const graver[] = {"rror",     "xception", "ail",     "illed",   "arn",
                                         "fatal",    "FATAL",    "RITICAL", "ancel",   "top",
                                         "nterrupt", "reempt",   "ignal",   "erminat", "xit"};
    bool informs = false;
    for (size_t i = 0; i < ARRAY_LEN(levels) && !informs; i++) {
        informs = str_find(t, str_of(levels[i])) >= 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(graver) && informs; i++) {
        informs = str_find(t, str_of(graver[i])) < 0;
    }
    return informs;
}

/* What frameworks cancel because something else has failed tells neither what nor that somebody
 * wanted it; what a library got round, or advises whatever happened, tells nothing either. */
static bool is_aftermath(struct str t)
{
    static const char *const parts[] = {"cancelled because Stage ",
                                        "RecvAsync is cancelled",
                                        "SendAsync is cancelled",
                                        "mkdir -p failed for path ",
                                        "Matplotlib created a temporary ",
                                        "Running pip as the 'root' user",
                                        "Ignoring invalid distribution ",
                                        "Error occurred when finalizing GeneratorDataset",
                                        " factory for plugin cu",
                                        "TF-TRT Warning: Could not find TensorRT",
                                        "which is older than the ptxas CUDA version"};
    static const char *const starts[] = {"CUDA kernel errors might be ", "For debugging consider ",
                                         "Compile with `TORCH_USE_CUDA_DSA`",
                                         "[W] [TRT] CUDA lazy loading"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (str_find(t, str_of(parts[i])) >= 0) {
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        if (str_starts(str_trim(t), starts[i])) {
            return true;
        }
    }
    return false;
}

/* What was written over is gone: "\r 10 %\r 20 %". */
static struct str last_written(struct str t)
{
    while (t.n > 0 && t.p[t.n - 1] == '\r') {
        t.n--;
    }
    for (size_t i = t.n; i > 0; i--) {
        if (t.p[i - 1] == '\r') {
            return (struct str){t.p + i, t.n - i};
        }
    }
    return t;
}

static size_t blanks(struct str t, size_t from)
{
    size_t n = 0;
    while (from + n < t.n && (t.p[from + n] == ' ' || t.p[from + n] == '\t')) {
        n++;
    }
    return n;
}

/* "[rank0]:   File "train.py", line 3, in main". */
static bool read_frame(struct str t, struct code_frame *f, struct str *path)
{
    ptrdiff_t at = str_find(t, STR("File \""));
    ptrdiff_t end = at < 0 ? -1 : str_find(t, STR("\", line "));
    if (end < at || at < 0) {
        return false;
    }
    size_t n = (size_t)at;
    while (n > 0 && (t.p[n - 1] == ' ' || t.p[n - 1] == '\t')) {
        n--;
    }
    if (n >= sizeof f->mark || (n > 0 && n == (size_t)at)) {
        return false;
    }
    memcpy(f->mark, t.p, n);
    f->mark_n = n;
    f->indent = (size_t)at - n;
    f->open = true;
    *path = (struct str){t.p + at + 6, (size_t)(end - at) - 6};
    return true;
}

static bool is_code(struct str t, const struct code_frame *f)
{
    return f->open && t.n >= f->mark_n && memcmp(t.p, f->mark, f->mark_n) == 0 &&
           blanks(t, f->mark_n) > f->indent;
}

/* Frames of other languages, and of notebooks: "at java.lang.Thread.run(Thread.java:748)", "frame
 * #3: c10::Error", "---> 12 train()". */
static bool is_other_frame(struct str t)
{
    struct str u = str_trim(t);
    size_t arrow = 0;
    while (arrow < u.n && u.p[arrow] == '-') {
        arrow++;
    }
    bool notebook =
        arrow > 1 && arrow + 2 < u.n && u.p[arrow] == '>' && isdigit((unsigned char)u.p[arrow + 2]);
    return (str_starts(u, "at ") && str_ends(u, ")")) || str_starts(u, "frame #") || notebook;
}

/* "ValueError: bad shape" or "StopIteration": does a line begin with the name of an exception? */
static bool is_raised(struct str t)
{
    size_t n = 0;
    while (n < t.n && (cause_is_word(t.p[n]) || t.p[n] == '.')) {
        n++;
    }
    return n > 3 && (n == t.n || t.p[n] == ':') && !isdigit((unsigned char)t.p[0]);
}

/* An exception goes on to the next traceback, or to the sentence between two of a chain. */
static void end_raised(struct said *s)
{
    if (s->raised_n > 0 && s->raised[s->raised_n - 1].n == 0) {
        struct str *r = &s->raised[s->raised_n - 1];
        r->n = (size_t)(s->s + s->n - r->p);
    }
}

static void begin_raised(struct said *s)
{
    end_raised(s);
    if (s->raised_n == CAUSE_RAISED_MAX) {
        memmove(s->raised, s->raised + 1, sizeof s->raised - sizeof s->raised[0]);
        s->raised_n--;
    }
    s->raised[s->raised_n++] = (struct str){s->s + s->n, 0};
}

static bool is_chained(struct str t)
{
    return str_find(t, STR("During handling of the above exception")) >= 0 ||
           str_find(t, STR("The above exception was the direct cause")) >= 0;
}

/* "UnexpectedStatusException: Error for Training job NAME: Failed. Reason: " says nothing, and a
 * name may say anything. */
static struct str without_frame(struct str t)
{
    static const char *const ends[] = {". Reason: ", "Failed Reason: ", "Failed. Reason: "};
    struct str head = {t.p, MIN(t.n, (size_t)400)};
    if (str_find(head, STR("Error for ")) < 0) {
        return t;
    }
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        ptrdiff_t at = str_find(head, str_of(ends[i]));
        if (at >= 0) {
            size_t skip = (size_t)at + strlen(ends[i]);
            return (struct str){t.p + skip, t.n - skip};
        }
    }
    return t;
}

void cause_said(struct str text, struct said *ret)
{
    struct code_frame frame = {.open = false};
    struct str rest = without_frame(text);
    rest.n = MIN(rest.n, (size_t)CAUSE_TEXT_MAX);
    bool inside = false; /* a traceback */
    bool boxed = false;
    ret->n = ret->raised_n = 0;
    ret->raised_in = CAUSE_UNKNOWN;
    ret->maps_rows = ret->asserts = ret->takes_field = false;
    while (rest.n > 0) {
        struct str path;
        struct str line = last_written(str_split(&rest, '\n'));
        bool start = str_find(line, STR("Traceback (most recent call last)")) >= 0;
        if (start || is_chained(line)) {
            end_raised(ret);
            inside = inside || start;
            boxed = start && line.n > 0 && is_box(str_trim(line));
            frame.open = false;
        } else if (read_frame(line, &frame, &path)) {
            ret->raised_in = cause_of_module(path);
            ret->maps_rows = ret->maps_rows || is_row_mapper(path);
            ret->asserts = ret->takes_field = false;
            inside = true;
            continue;
        } else if (is_other_frame(line)) {
            ret->raised_in = ret->raised_in == CAUSE_UNKNOWN
                                 ? cause_of_module(line) /* first is inner */
                                 : ret->raised_in;
            continue;
        } else if ((inside && is_code(line, &frame)) || (boxed && is_box(str_trim(line)))) {
            ret->asserts = ret->asserts || str_starts(str_trim(line), "assert ");
            ret->takes_field = ret->takes_field || takes_field(line);
            continue;
        } else if (frame.open && line.n >= frame.mark_n &&
                   memcmp(line.p, frame.mark, frame.mark_n) == 0) {
            size_t skip = frame.mark_n + blanks(line, frame.mark_n);
            line = (struct str){line.p + skip, line.n - skip};
        }
        if ((rest.n + ret->n > 0 && only_informs(line)) /* not alone */ || is_aftermath(line)) {
            continue;
        }
        /* code whose frame was cut off, or is not known for one */
        ret->takes_field = ret->takes_field || (str_starts(line, "    ") && takes_field(line));
        if (ret->raised_in == CAUSE_UNKNOWN) {
            ret->raised_in = cause_of_class(line);
        }
        if (inside && !start && is_raised(line)) {
            begin_raised(ret);
            inside = false;
        }
        put_line(ret, line);
    }
    end_raised(ret);
    while (ret->n > 0 && isspace((unsigned char)ret->s[ret->n - 1])) {
        ret->n--;
    }
    ret->s[ret->n] = '\0';
}
