/* See prices.h. */
#include "prices.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/log.h"
#include <stdio.h>

/* USD per hour from the operator's file, as decimal text; the store keeps what was used. A mistake
 * in it must not keep us from leading: what has no price waits with price_unknown. */
bool prices_load(struct controller *c, void *arg, struct err *err)
{
    (void)arg;
    AUTO_FILE FILE *f = NULL;
    AUTO_JSON json_t *o = NULL;
    AUTO_BUF struct buf text = BUF_INIT(1024 * 1024);
    const char *type;
    json_t *v;
    if (c->cfg.prices_file == NULL || c->cfg.prices_file[0] == '\0') {
        return true;
    }
    f = fopen(c->cfg.prices_file, "re");
    if (f == NULL) {
        log_event(LOG_ERROR, "prices_unreadable", LF_S("file", c->cfg.prices_file));
        return true; /* tasks wait with price_unknown */
    }
    char chunk[4096];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;) {
        buf_add(&text, chunk, n);
    }
    struct err why = ERR_INIT;
    if (!json_parse(buf_str(&text), text.max, &o, &why)) {
        log_event(LOG_ERROR, "prices_unreadable", LF_S("file", c->cfg.prices_file), LF_ERR(&why));
        return true;
    }
    json_object_foreach(o, type, v)
    {
        int64_t musd;
        if (!json_is_string(v) || !parse_usd(str_of(json_string_value(v)), &musd, &why)) {
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
