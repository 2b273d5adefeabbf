/* See archive_export.h. archive.export_kind counts through `kinds`; the summary comes last. */
#include "archive_export.h"
#include "queries.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"
#include <stdio.h>

#define ENOUGH_BYTES ((int64_t)1 << 20) /* of an object: the leader's loop waits for its reading */

enum words { NO_WORDS, OF_ATTEMPTS, OF_TASKS };
static const struct {
    const char *word; /* of the objects' names */
    const char *name, *sql;
    enum words words;
} kinds[] = {
    {"attempts", QUERY(ARCHIVE_EXPORT_ATTEMPTS), OF_ATTEMPTS},
    {"parts", QUERY(ARCHIVE_EXPORT_PARTS), OF_TASKS},
    {"metrics", QUERY(ARCHIVE_EXPORT_METRICS), NO_WORDS},
};

static const char *attempt_word(int i)
{
    return attempt_state_name((enum attempt_state)i);
}

static const char *task_word(int i)
{
    return task_state_name((enum task_state)i);
}

static const char *cause_word(int i)
{
    return cause_name((enum cause)i);
}

static void param_words(struct params *p, const char *(*word)(int), int n)
{
    const char *words[64];
    ASSERT(n <= (int)ARRAY_LEN(words));
    for (int i = 0; i < n; i++) {
        words[i] = word(i);
    }
    param_text_array(p, words, (size_t)n);
}

static bool page(struct store *s, int kind, int64_t campaign_id, int64_t after, int64_t n_max,
                 struct archive_object *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, campaign_id);
    param_i64(&p, after);
    param_i64(&p, n_max);
    if (kinds[kind].words != NO_WORDS) {
        bool tasks = kinds[kind].words == OF_TASKS;
        param_i64(&p,
                  MIN((int64_t)ret->text.max / 4, ENOUGH_BYTES)); /* rows with words may be large */
        param_words(&p, tasks ? task_word : attempt_word,
                    tasks ? (int)TASK_STATE_COUNT : (int)ATTEMPT_STATE_COUNT);
        param_words(&p, cause_word, CAUSE_COUNT);
    }
    if (!store_exec(s, kinds[kind].name, kinds[kind].sql, &p, &r, err)) {
        return false;
    }
    buf_add_cstr(&ret->text, row_text(r, 0, 0));
    ret->after = row_i64(r, 0, 1);
    ret->rows = row_i64(r, 0, 2);
    return true;
}

static bool turn(struct store *s, int64_t campaign_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    return store_run(s, QUERY(ARCHIVE_EXPORT_TURN), &p, NULL, err);
}

static bool summary(struct store *s, int64_t campaign_id, struct archive_object *ret,
                    struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    ret->last = true;
    return store_text(s, QUERY(ARCHIVE_EXPORT_SUMMARY), &p, "archive", &ret->text, err);
}

bool store_archive_object(struct store *s, int64_t campaign_id, int64_t n_max,
                          struct archive_object *ret, struct err *err)
{
    ASSERT(s->role == STORE_LEADER && tx_open(s) && n_max > 0);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, campaign_id);
    if (!store_exec(s, QUERY(ARCHIVE_EXPORT_NEXT), &p, &r, err)) {
        return false;
    }
    ret->due = row_count(r) > 0;
    if (!ret->due) {
        return true;
    }
    int kind = row_int(r, 0, 1);
    int64_t after = row_i64(r, 0, 2);
    ret->rows = 0;
    for (; kind < (int)ARRAY_LEN(kinds) && ret->rows == 0; kind++, after = 0) {
        if (!page(s, kind, campaign_id, after, n_max, ret, err) ||
            (ret->rows == 0 && !turn(s, campaign_id, err))) {
            return false;
        }
    }
    bool whole = ret->rows > 0;
    if (!whole && !summary(s, campaign_id, ret, err)) {
        return false;
    }
    char file[64];
    row_text_into(r, 0, 0, ret->folder, sizeof ret->folder);
    (void)snprintf(file, sizeof file, "%s-%06lld.jsonl", whole ? kinds[kind - 1].word : "",
                   (long long)row_i64(r, 0, 3) + 1);
    (void)snprintf(ret->uri, sizeof ret->uri, "%s%s", ret->folder, whole ? file : "summary.json");
    return !ret->text.overflow ||
           err_set(err, ERR_TOO_LARGE, "an object of %lld rows has more than %zu bytes",
                   (long long)ret->rows, ret->text.max);
}

bool store_archive_exported(struct store *s, int64_t campaign_id, const struct archive_object *o,
                            struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, o->after);
    param_i64(&p, o->rows);
    param_bool(&p, o->last);
    param_text(&p, o->folder);
    return store_run(s, QUERY(ARCHIVE_EXPORTED), &p, NULL, err);
}

bool store_archive_export_failed(struct store *s, int64_t campaign_id, const char *why,
                                 struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_outside_text(&p, why, 500);
    return store_run(s, QUERY(ARCHIVE_EXPORT_FAILED), &p, NULL, err);
}
