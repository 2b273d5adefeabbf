/* drover audit: who changed what. */
#include "cli.h"
#include "pages.h"
#include "print.h"
#include "ref.h"

static char *who_text(const struct cli *cli, const json_t *row)
{
    (void)cli;
    return xstrdup(jstr(row, jnull(row, "name") ? "who" : "name"));
}

/* As JSON in a line; nothing for {} and null. */
static char *object_text(const json_t *v)
{
    return json_object_size(v) > 0 ? json_text(v) : xstrdup("");
}

static char *before_text(const struct cli *cli, const json_t *row)
{
    (void)cli;
    return object_text(json_object_get(row, "before"));
}

/* What was asked for. */
static char *detail_text(const struct cli *cli, const json_t *row)
{
    (void)cli;
    return object_text(json_object_get(row, "detail"));
}

static const struct list_column columns[] = {
    {"WHEN", COLUMN_TIME, .path = "at"},
    {"WHO", COLUMN_TEXT, .path = "who", .text = who_text},
    {"ACTION", COLUMN_TEXT, .path = "action"},
    {"SUBJECT", COLUMN_TEXT, .path = "subject"},
    {"ROLE", COLUMN_TEXT, .path = "role", .wide = true},
    {"NAME", COLUMN_TEXT, .path = "name", .wide = true},
    {"CAMPAIGN", COLUMN_TEXT, .path = "campaign", .wide = true},
    {"BEFORE", COLUMN_TEXT, .text = before_text, .wide = true},
    {"DETAIL", COLUMN_TEXT, .text = detail_text, .wide = true},
    {"REQUEST", COLUMN_TEXT, .path = "request_id", .wide = true},
    {"ID", COLUMN_TEXT, .path = "id", .wide = true},
};
static const struct api_list audit = LIST(columns, "id");

int cmd_audit(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    bool of_one = cli->opt.campaign != NULL;
    if (of_one && !ref_read(cli, cli->opt.campaign, &ref, &status)) {
        return status;
    }
    const char *const pairs[][2] = {{"campaign", of_one ? ref.campaign : NULL},
                                    {"who", cli->opt.who},
                                    {"action", cli->opt.action}};
    AUTO_FREE char *query = pages_query(pairs, ARRAY_LEN(pairs));
    return pages_print(cli, &(struct pages){.list = &audit,
                                            .path = "/v1/audit",
                                            .query = query,
                                            .key = "audit",
                                            .screen = 50,
                                            .more = "drover audit",
                                            .most = 1000});
}
