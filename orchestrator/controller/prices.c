/* See prices.h. */
#include "prices.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/log.h"
#include "core/leader/rows_read.h"
#include "lease.h"
#include "store/leader/quotas.h"
#include "store/rows/view.h"
#include <stdio.h>
#include <sys/stat.h>

static bool file_named(const struct controller *c)
{
    return c->cfg.prices_file != NULL && c->cfg.prices_file[0] != '\0';
}

/* What tells a file that was written again; all zero: there is no file, or none is named. */
static void file_look(const struct controller *c, struct prices_file *ret)
{
    struct stat st;
    memset(ret, 0, sizeof *ret);
    if (file_named(c) && stat(c->cfg.prices_file, &st) == 0) {
        *ret = (struct prices_file){.inode = (int64_t)st.st_ino,
                                    .size = (int64_t)st.st_size,
                                    .s = (int64_t)st.st_mtim.tv_sec,
                                    .ns = (int64_t)st.st_mtim.tv_nsec};
    }
}

/* NULL: it cannot be read; the log says why. */
static json_t *file_read(const struct controller *c)
{
    AUTO_FILE FILE *f = fopen(c->cfg.prices_file, "re");
    AUTO_BUF struct buf text = BUF_INIT(1024 * 1024);
    json_t *o = NULL;
    if (f == NULL) {
        log_event(LOG_ERROR, "prices_unreadable", LF_S("file", c->cfg.prices_file));
        return NULL;
    }
    struct err why = ERR_INIT;
    bool whole =
        buf_add_file(&text, f) ||
        err_set(&why, ERR_INVALID, "cannot be read, or is larger than %zu bytes", text.max);
    if (!whole || !json_parse(str_without_mark(buf_str(&text)), text.max, &o, &why)) {
        log_event(LOG_ERROR, "prices_unreadable", LF_S("file", c->cfg.prices_file), LF_ERR(&why));
    }
    return o;
}

bool prices_use_list(struct controller *c, struct err *err)
{
    return store_price_list_use(c->store, c->cfg.paid_ppm, file_named(c) ? c->cfg.prices_file : "",
                                c->prices_named, err);
}

/* Which types the file names, so that AWS Pricing's prices of them do not count. */
static void name_types(struct controller *c, const json_t *o)
{
    const char *type;
    json_t *v;
    AUTO_JSON json_t *names = json_array();
    json_object_foreach((json_t *)(uintptr_t)o, type, v)
    {
        (void)json_array_append_new(names, json_string(type));
    }
    free(c->prices_named);
    c->prices_named = json_is_object(o) ? json_text(names) : NULL;
}

/* USD per hour from the operator's file, as decimal text; the store keeps what was used. A mistake
 * in it must not keep us from leading: what has no price waits with price_unknown. */
static bool load_file(struct controller *c, struct err *err)
{
    const char *type;
    json_t *v;
    AUTO_JSON json_t *o = file_read(c);
    name_types(c, o);
    json_object_foreach(o, type, v)
    {
        musd_t musd;
        struct err why = ERR_INIT;
        if (!prices_entry(type, v, &musd, &why)) {
            log_event(LOG_ERROR, "price_unreadable", LF_S("file", c->cfg.prices_file),
                      LF_S("instance_type", type));
            continue;
        }
        if (!store_price_put(c->store, type, musd, c->cfg.prices_file, err)) {
            return false;
        }
    }
    return true;
}

static bool prices_load(struct controller *c, void *arg, struct err *err)
{
    (void)arg;
    file_look(c, &c->prices_file);
    return (!file_named(c) || load_file(c, err)) && prices_use_list(c, err);
}

static bool read_prices(struct controller *c, void *arg, struct err *err)
{
    AUTO_FREE struct slots_row *rows = NULL;
    size_t n = 0;
    (void)arg;
    if (!view_slots(c->store, &rows, &n, err)) {
        return false;
    }
    rows_prices(&c->state, rows, n);
    return true;
}

bool prices_reread(struct controller *c)
{
    bool ok = leader_tx(c, read_prices, NULL);
    c->state.decide |= ok;
    return ok;
}

void prices_take_over(struct controller *c)
{
    if (!leader_tx(c, prices_load, NULL)) {
        prices_file_again(&c->prices_file);
    }
}

void prices_tick(struct controller *c)
{
    struct prices_file now;
    file_look(c, &now);
    if (!prices_file_moved(&c->prices_file, &now)) {
        return;
    }
    if (leader_tx(c, prices_load, NULL) && prices_reread(c)) {
        log_event(LOG_INFO, "prices_read",
                  LF_S("file", file_named(c) ? c->cfg.prices_file : "none"));
    } else {
        prices_file_again(&c->prices_file);
    }
}
