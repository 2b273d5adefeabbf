/* See list_view.h. The rows of a list are the array of its answer whose items have a schema of
 * their own. */
#include "list_view.h"
#include "reply.h"
#include "router.h"
#include "schemas.h"
#include "server_state.h"
#include <stdio.h>

static bool takes(const struct route *t, const char *id)
{
    for (struct str ids = str_of(t->query); ids.n > 0;) {
        if (str_eq_cstr(str_split(&ids, ' '), id)) {
            return true;
        }
    }
    return false;
}

/* Of the rows of this answer; the order of pages is the handler's. */
static const char *order_of(const struct api_req *r)
{
    return takes(r->route, "order_by") ? req_query(r, "order_by") : NULL;
}

/* "PartPage" of "200 PartPage". */
static struct str answer_of(const struct route *t)
{
    struct str rest = str_of(t->answers);
    struct str first = str_split(&rest, ',');
    (void)str_split(&first, ' ');
    return first;
}

/* The name of the rows' schema, and of the member that has them. */
static const char *rows_of(const json_t *schemas, struct str list, const char **ret_key)
{
    const json_t *schema = json_object_getn(schemas, list.p, list.n);
    const char *key;
    const json_t *v;
    json_t *properties = json_object_get(schema, "properties");
    json_object_foreach(properties, key, v)
    {
        const char *ref = json_string_value(json_object_get(json_object_get(v, "items"), "$ref"));
        if (ref != NULL) {
            *ret_key = key;
            return ref + strlen(SCHEMA_REF_PREFIX);
        }
    }
    BUG("a list without rows");
}

static bool member_check(const json_t *members, const char *parameter, struct str name,
                         struct err *err)
{
    AUTO_BUF struct buf known = BUF_INIT(600);
    const char *key;
    const json_t *v;
    if (json_object_getn(members, name.p, name.n) != NULL) {
        return true;
    }
    json_object_foreach((json_t *)(uintptr_t)members, key, v)
    {
        buf_addf(&known, "%s%s", known.n > 0 ? " " : "", key);
    }
    return err_set(err, ERR_MALFORMED,
                   "query parameter '%s': '%.*s' is no member here; there are: %s", parameter,
                   (int)MIN(name.n, (size_t)40), name.p, buf_cstr(&known));
}

bool list_view_check(const struct api_req *r, struct err *err)
{
    const char *fields = req_query(r, "fields"), *order = order_of(r), *key;
    if (!takes(r->route, "fields") || (fields == NULL && order == NULL)) {
        return true;
    }
    const char *rows = rows_of(r->api->schemas, answer_of(r->route), &key);
    const json_t *members = json_object_get(json_object_get(r->api->schemas, rows), "properties");
    struct str rest = str_of(fields), by = str_of(order);
    while (rest.n > 0) {
        if (!member_check(members, "fields", str_split(&rest, ','), err)) {
            return false;
        }
    }
    return order == NULL || member_check(members, "order_by", str_split(&by, ' '), err);
}

struct ordered_row {
    json_t *row;
    const json_t *value;
    size_t i; /* ties keep the order of the list */
    bool down;
};

static int value_cmp(const json_t *a, const json_t *b)
{
    const char *x = json_string_value(a), *y = json_string_value(b);
    if (x != NULL && y != NULL) {
        return strcmp(x, y);
    }
    double p = json_is_boolean(a) ? json_is_true(a) : json_number_value(a);
    double q = json_is_boolean(b) ? json_is_true(b) : json_number_value(b);
    return (p > q) - (p < q);
}

/* What has no value is last, up or down. */
static int row_cmp(const void *a, const void *b)
{
    const struct ordered_row *x = a, *y = b;
    bool no_x = x->value == NULL || json_is_null(x->value);
    bool no_y = y->value == NULL || json_is_null(y->value);
    int cmp = no_x || no_y ? no_x - no_y : value_cmp(x->value, y->value);
    cmp = x->down && !no_x && !no_y ? -cmp : cmp;
    return cmp != 0 ? cmp : (x->i > y->i) - (x->i < y->i);
}

static json_t *in_order(const json_t *rows, const char *order_by)
{
    size_t i, n = json_array_size(rows);
    struct str rest = str_of(order_by);
    struct str name = str_split(&rest, ' ');
    struct ordered_row *at = xcalloc(n + 1, sizeof *at);
    json_t *row, *ret = json_array();
    json_array_foreach(rows, i, row)
    {
        at[i] = (struct ordered_row){
            .row = row, .value = json_object_getn(row, name.p, name.n), .i = i, .down = rest.n > 0};
    }
    qsort(at, n, sizeof *at, row_cmp);
    for (i = 0; i < n; i++) {
        (void)json_array_append(ret, at[i].row);
    }
    free(at);
    return ret;
}

/* The row with these members, in their order. */
static json_t *with_fields(const json_t *row, const char *fields)
{
    json_t *ret = json_object();
    for (struct str rest = str_of(fields); rest.n > 0;) {
        struct str name = str_split(&rest, ',');
        json_t *v = json_object_getn(row, name.p, name.n);
        if (v != NULL) {
            (void)json_object_setn(ret, name.p, name.n, v);
        }
    }
    return ret;
}

void list_view_apply(struct api_req *r)
{
    const char *fields = req_query(r, "fields"), *order = order_of(r), *key;
    if (!takes(r->route, "fields") || (fields == NULL && order == NULL) || r->status != 200) {
        return;
    }
    size_t i;
    json_t *row;
    AUTO_JSON json_t *answer = json_loadb(r->out.p, r->out.n, 0, NULL);
    ASSERT(answer != NULL);
    (void)rows_of(r->api->schemas, answer_of(r->route), &key);
    json_t *rows = json_incref(json_object_get(answer, key));
    if (order != NULL) {
        json_t *ordered = in_order(rows, order);
        json_decref(rows);
        rows = ordered;
    }
    json_t *shown = fields != NULL ? json_array() : json_incref(rows);
    for (i = 0; fields != NULL && i < json_array_size(rows); i++) {
        row = json_array_get(rows, i);
        (void)json_array_append_new(shown, with_fields(row, fields));
    }
    json_decref(rows);
    (void)json_object_set_new(answer, key, shown);
    AUTO_FREE char *text = json_text(answer);
    (void)reply_json(r, 200, str_of(text));
}

void list_view_name(const struct route *t, struct str name, char ret[static LIST_VIEW_NAME_MAX])
{
    bool view = takes(t, "fields") && str_eq(name, answer_of(t));
    (void)snprintf(ret, LIST_VIEW_NAME_MAX, "%.*s%s", (int)name.n, name.p, view ? "View" : "");
}

/* Of a list's schema: PartPageView, that or PartPageFields, whose rows are PartRowFields. */
static void view_add(json_t *schemas, struct str list)
{
    const char *key;
    AUTO_FREE char *whole = str_dup(list);
    AUTO_FREE char *view = xasprintf("%sView", whole);
    AUTO_FREE char *part = xasprintf("%sFields", whole);
    const char *rows = rows_of(schemas, list, &key);
    AUTO_FREE char *row = xasprintf("%sFields", rows);
    AUTO_FREE char *row_ref = xasprintf(SCHEMA_REF_PREFIX "%s", row);
    json_t *few = json_copy(json_object_get(schemas, rows));
    json_t *page = json_deep_copy(json_object_get(schemas, whole));
    (void)json_object_del(few, "required");
    (void)json_object_del(few, "examples");
    (void)json_object_del(page, "examples");
    (void)json_object_set_new(
        json_object_get(json_object_get(json_object_get(page, "properties"), key), "items"), "$ref",
        json_string(row_ref));
    (void)json_object_set_new(schemas, row, few);
    (void)json_object_set_new(schemas, part, page);
    AUTO_FREE char *full_ref = xasprintf(SCHEMA_REF_PREFIX "%s", whole);
    AUTO_FREE char *part_ref = xasprintf(SCHEMA_REF_PREFIX "%s", part);
    json_t *any =
        json_pack("{s:O, s:[{s:s},{s:s}]}", "description", json_object_get(page, "description"),
                  "anyOf", "$ref", full_ref, "$ref", part_ref);
    ASSERT(any != NULL);
    (void)json_object_set_new(schemas, view, any);
}

void list_view_schemas(json_t *schemas)
{
    for (size_t i = 0; i < route_table_n; i++) {
        if (takes(&route_table[i], "fields")) {
            view_add(schemas, answer_of(&route_table[i]));
        }
    }
}
