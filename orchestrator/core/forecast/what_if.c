/* key=value pairs joined by commas; each key once. */
#include "what_if.h"
#include "common/cleanup.h"

#define SLOTS_MAX    INT64_C(1000000)
#define LOSS_DIGITS  6
#define LOSS_MAX_PPM INT64_C(990000) /* above this a part would practically never end */

#define PRIORITY_MAX 100

static const char *const keys[] = {"slots", "type",  "parts",  "spot_loss",
                                   "order", "stage", "budget", "priority"};
enum key {
    KEY_SLOTS,
    KEY_TYPE,
    KEY_PARTS,
    KEY_SPOT_LOSS,
    KEY_ORDER,
    KEY_STAGE,
    KEY_BUDGET,
    KEY_PRIORITY,
    KEY_COUNT
};

static int key_find(struct str name)
{
    for (int i = 0; i < KEY_COUNT; i++) {
        if (str_eq_cstr(name, keys[i])) {
            return i;
        }
    }
    return -1;
}

/* The known key most similar to this word; NULL when none is similar. */
static const char *guess(struct str name)
{
    size_t best = 3;
    const char *ret = NULL;
    for (int i = 0; i < KEY_COUNT; i++) {
        size_t d = str_distance(name, str_of(keys[i]));
        if (d < best) {
            best = d;
            ret = keys[i];
        }
    }
    return ret;
}

static void fault(struct faults *f, struct position at, struct str key, const char *code,
                  const char *hint, const char *message)
{
    AUTO_FREE char *name = str_dup(key);
    faults_add(f, at, name, code, hint, "%s", message);
}

static bool type_ok(struct str v)
{
    bool ok = str_starts(v, "ml.") && v.n <= INSTANCE_TYPE_MAX && v.n > 5;
    for (size_t i = 0; i < v.n && ok; i++) {
        char c = v.p[i];
        ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    }
    return ok;
}

/* True for a limit that PATCH takes: none, or a number that parses. */
static bool limit_read(enum key key, struct str v, int64_t *ret)
{
    struct err ignored = ERR_INIT;
    if (str_eq_cstr(v, "none")) {
        *ret = WHAT_IF_NO_LIMIT;
        return true;
    }
    return key == KEY_BUDGET ? parse_usd(v, ret, &ignored)
                             : parse_i64(v, 0, INT32_MAX, ret, &ignored);
}

/* Of the keys that PATCH has, too. */
static void take_limit(enum key key, struct str name, struct str v, struct position at,
                       struct what_if *w, struct faults *f)
{
    int64_t n = 0;
    struct err ignored = ERR_INIT;
    if (key == KEY_PARTS && !limit_read(key, v, &w->parts)) {
        fault(f, at, name, "range", "parts=16", "a number of parts at once, 0 or more, or none");
    } else if (key == KEY_BUDGET && !limit_read(key, v, &w->budget_musd)) {
        fault(f, at, name, "range", "budget=900", "an amount in USD, or none");
    } else if (key == KEY_PRIORITY && !parse_i64(v, 0, PRIORITY_MAX, &n, &ignored)) {
        fault(f, at, name, "range", "priority=80", "a number from 0 to 100");
    } else if (key == KEY_PRIORITY) {
        w->priority = (int)n;
    } else if (key == KEY_STAGE && (v.n == 0 || v.n >= sizeof w->stage)) {
        fault(f, at, name, "value", "stage=download,parts=8", "the name of a stage");
    } else if (key == KEY_STAGE) {
        memcpy(w->stage, v.p, v.n);
        w->stage[v.n] = '\0';
    }
}

static void take(enum key key, struct str name, struct str v, struct position at, struct what_if *w,
                 struct faults *f)
{
    struct err err = ERR_INIT;
    int64_t ppm = 0;
    switch (key) {
    case KEY_SLOTS:
        if (!parse_i64(v, 1, SLOTS_MAX, &w->slots, &err)) {
            fault(f, at, name, "range", "slots=30", "a number of instances from 1 to 1000000");
        }
        return;
    case KEY_PARTS:
    case KEY_STAGE:
    case KEY_BUDGET:
    case KEY_PRIORITY:
        take_limit(key, name, v, at, w, f);
        return;
    case KEY_TYPE:
        if (!type_ok(v)) {
            fault(f, at, name, "type", "type=ml.c5n.18xlarge", "an instance type");
            return;
        }
        memcpy(w->instance_type, v.p, v.n);
        w->instance_type[v.n] = '\0';
        return;
    case KEY_SPOT_LOSS:
        if (!parse_decimal(v, LOSS_DIGITS, 0, LOSS_MAX_PPM, &ppm, &err)) {
            fault(f, at, name, "range", "spot_loss=0.2", "a chance from 0 to 0.99");
            return;
        }
        w->spot_loss = (double)ppm / 1e6;
        return;
    case KEY_ORDER:
        w->fifo = str_eq_cstr(v, "fifo");
        w->longest_first = str_eq_cstr(v, "longest");
        if (!w->fifo && !w->longest_first) {
            fault(f, at, name, "value", "order=fifo", "fifo or longest");
        }
        return;
    case KEY_COUNT:
        break;
    }
    BUG("a question that does not exist");
}

bool what_if_parse(struct str text, struct what_if *ret, struct faults *faults)
{
    struct what_if w = WHAT_IF_NOTHING;
    bool seen[KEY_COUNT] = {false};
    int before = faults->n + faults->dropped;
    if (text.n > WHAT_IF_TEXT_MAX) {
        faults_add(faults, (struct position){1, 1}, "what_if", "range", "slots=30,order=fifo",
                   "longer than %d characters", WHAT_IF_TEXT_MAX);
        return false;
    }
    struct str rest = str_trim(text);
    while (rest.n > 0) {
        struct str value = str_split(&rest, ',');
        struct position at = {.line = 1, .column = (int)(value.p - text.p) + 1};
        struct str name = str_trim(str_split(&value, '='));
        int key = key_find(name);
        if (key < 0) {
            const char *like = guess(name);
            fault(faults, at, name, "unknown_key",
                  like != NULL ? like
                               : "slots, type, parts, stage, budget, priority, spot_loss, order",
                  "is nothing that can be tried");
        } else if (seen[key]) {
            fault(faults, at, name, "duplicate", "give it once", "is given twice");
        } else {
            seen[key] = true;
            take((enum key)key, name, str_trim(value), at, &w, faults);
        }
    }
    if (seen[KEY_STAGE] && !seen[KEY_PARTS] && !seen[KEY_BUDGET]) {
        faults_add(faults, (struct position){1, 1}, "stage", "value", "stage=download,parts=8",
                   "is given without parts and without a budget");
    }
    if (faults->n + faults->dropped > before) {
        return false;
    }
    *ret = w;
    return true;
}
