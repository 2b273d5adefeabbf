/* AWS Pricing: the prices of the configuration, which the invoice uses too, as the products of
 * SageMaker and FSx, among others that nobody here rents. See services.h. */
#include "common/hash.h"
#include "local/app.h"
#include "services.h"
#include <stdio.h>

#define FILTERS_MAX 50

struct product {
    const char *service, *family;
    json_t *attributes;
    const char *unit, *usd;
};

static json_t *document(const struct product *p)
{
    char sku[16];
    AUTO_FREE char *all = json_dumps(p->attributes, JSON_COMPACT | JSON_SORT_KEYS);
    (void)snprintf(sku, sizeof sku, "SKU%08X", hash_crc32(all, strlen(all)));
    AUTO_FREE char *offer = xasprintf("%s.JRTCKXETXF", sku);
    AUTO_FREE char *rate = xasprintf("%s.6YS6EN2CT7", offer);
    /* AWS writes ten decimals. */
    size_t whole = strcspn(p->usd, ".");
    const char *decimals = p->usd[whole] == '.' ? p->usd + whole + 1 : "";
    AUTO_FREE char *usd = xasprintf("%.*s.%s%.*s", (int)whole, p->usd, decimals,
                                    (int)(10 - MIN(strlen(decimals), (size_t)10)), "0000000000");
    return json_pack("{s:{s:s, s:s, s:O}, s:s, s:{s:{s:{s:s, s:s, s:{}, s:{s:{s:s, s:s, s:s, s:s, "
                     "s:[], s:{s:s}}}}}}, s:s}",
                     "product", "productFamily", p->family, "sku", sku, "attributes", p->attributes,
                     "serviceCode", p->service, "terms", "OnDemand", offer, "offerTermCode",
                     "JRTCKXETXF", "sku", sku, "termAttributes", "priceDimensions", rate,
                     "rateCode", rate, "unit", p->unit, "beginRange", "0", "endRange", "Inf",
                     "appliesTo", "pricePerUnit", "USD", usd, "version", "20260101000000");
}

/* Every filter is TERM_MATCH: the field has this value. */
static bool matches(const struct product *p, const json_t *filters)
{
    size_t i;
    json_t *f;
    json_array_foreach(filters, i, f)
    {
        const char *field = json_string_value(json_object_get(f, "Field"));
        const char *value = json_string_value(json_object_get(f, "Value"));
        const char *have = strcmp(field, "productFamily") == 0 ? p->family
                           : strcmp(field, "ServiceCode") == 0
                               ? p->service
                               : json_string_value(json_object_get(p->attributes, field));
        if (have == NULL || strcasecmp(have, value) != 0) {
            return false;
        }
    }
    return true;
}

/* Its document joins the list when it is asked for; the attributes are released. */
static void offer(json_t *list, const json_t *input, struct product *p)
{
    const char *service = json_string_value(json_object_get(input, "ServiceCode"));
    if (strcmp(service, p->service) == 0 && matches(p, json_object_get(input, "Filters"))) {
        AUTO_JSON json_t *doc = document(p);
        AUTO_FREE char *text = json_dumps(doc, JSON_COMPACT);
        (void)json_array_append_new(list, json_string(text));
    }
    json_decref(p->attributes);
}

static void offer_instance(json_t *list, const struct request *r, const char *type, const char *use,
                           const char *usd)
{
    AUTO_FREE char *instance = xasprintf("%s-%s", type, use);
    AUTO_FREE char *usage = xasprintf("USE1-%s:%s", use, type);
    json_t *attributes =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "regionCode", r->app->set.region,
                  "locationType", "AWS Region", "servicecode", "AmazonSageMaker", "instanceName",
                  type, "instanceType", instance, "component", use, "platoinstancename", type,
                  "platoinstancetype", use, "usagetype", usage);
    offer(list, r->input,
          &(struct product){"AmazonSageMaker", "ML Instance", attributes, "Hrs", usd});
}

/* tier: "SCRATCH_2"; "PERSISTENT_2/125" with its throughput. */
static void offer_storage(json_t *list, const struct request *r, const char *tier, const char *usd)
{
    int n = (int)strcspn(tier, "/");
    AUTO_FREE char *usage = xasprintf("USE1-Lustre-%.*s-SSD", n, tier);
    json_t *attributes =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "regionCode", r->app->set.region,
                  "locationType", "AWS Region", "servicecode", "AmazonFSx", "fileSystemType",
                  "Lustre", "storageType", "SSD", "usagetype", usage);
    if (tier[n] == '/') {
        (void)json_object_set_new(attributes, "throughputCapacity", json_string(tier + n + 1));
    }
    offer(list, r->input, &(struct product){"AmazonFSx", "Storage", attributes, "GB-Mo", usd});
}

/* Everything that is sold and asked for; the caller decrefs. */
static json_t *products(const struct request *r)
{
    json_t *list = json_array();
    const char *key;
    json_t *v;
    json_object_foreach(r->app->set.prices, key, v)
    {
        const char *usd = json_string_value(v);
        if (strncmp(key, "storage:", 8) == 0) {
            offer_storage(list, r, key + 8, usd);
        } else if (strncmp(key, "hosting:", 8) == 0) {
            offer_instance(list, r, key + 8, "Hosting", usd);
        } else {
            offer_instance(list, r, key, "Training", usd);
            offer_instance(list, r, key, "Notebook", "99");
        }
    }
    return list;
}

static bool filters_ok(const json_t *filters)
{
    size_t i;
    json_t *f;
    json_array_foreach(filters, i, f)
    {
        const char *type = json_string_value(json_object_get(f, "Type"));
        if (type == NULL || strcmp(type, "TERM_MATCH") != 0 ||
            !json_is_string(json_object_get(f, "Field")) ||
            !json_is_string(json_object_get(f, "Value"))) {
            return false;
        }
    }
    return json_array_size(filters) <= FILTERS_MAX;
}

void pricing_get_products(struct request *r)
{
    int64_t max, at = 0;
    struct err err = ERR_INIT;
    const char *token, *service;
    if (!json_get_required_str(r->input, "ServiceCode", &service, &err) ||
        !json_get_i64(r->input, "MaxResults", 1, 100, 100, &max, &err) ||
        !json_get_str(r->input, "NextToken", "0", &token, &err)) {
        reply_error(r, 400, "InvalidParameterException", "%s", err.message);
        return;
    }
    if (!filters_ok(json_object_get(r->input, "Filters"))) {
        reply_error(r, 400, "InvalidParameterException", "Invalid filter");
        return;
    }
    AUTO_JSON json_t *all = products(r);
    size_t n = json_array_size(all);
    if (!parse_i64(str_of(token), 0, (int64_t)n, &at, &err)) {
        reply_error(r, 400, "InvalidNextTokenException", "Invalid next token");
        return;
    }
    json_t *page = json_array();
    size_t end = MIN(n, (size_t)(at + max));
    for (size_t i = (size_t)at; i < end; i++) {
        (void)json_array_append(page, json_array_get(all, i));
    }
    json_t *o = json_pack("{s:s, s:o}", "FormatVersion", "aws_v1", "PriceList", page);
    if (end < n) {
        char next[24];
        (void)snprintf(next, sizeof next, "%zu", end);
        (void)json_object_set_new(o, "NextToken", json_string(next));
    }
    reply_json(r, o);
}
