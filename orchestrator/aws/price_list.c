/* See price_list.h. Attribute names of SageMaker's and FSx' products are not documented: what tells
 * the kind of a product is looked for in several. */
#include "price_list.h"
#include "common/json.h"
#include <stdio.h>

#define MUSD_MAX   (INT64_C(1000000) * MUSD_PER_USD) /* dearer than a million USD is a mistake */
#define SCAN_DEPTH 64                                /* prices of one product */

static const char *text_at(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

static bool has_word(const char *text, const char *word)
{
    return strcasestr(text, word) != NULL;
}

/* "0.1150000000" in micro-USD, rounded half up. */
static bool read_usd(const char *s, musd_t *ret)
{
    musd_t v = 0;
    int behind = -1; /* digits after the point; -1: no point yet */
    bool digits = false;
    for (; *s != '\0'; s++) {
        if (*s == '.' && behind < 0) {
            behind = 0;
            continue;
        }
        if (*s < '0' || *s > '9' || v > MUSD_MAX) {
            return false;
        }
        digits = true;
        if (behind < 6) {
            v = v * 10 + (*s - '0');
            behind += behind >= 0;
        } else if (behind == 6) {
            v += *s >= '5';
            behind++;
        }
    }
    for (behind = MAX(behind, 0); behind < 6 && v <= MUSD_MAX; behind++) {
        v *= 10;
    }
    *ret = v;
    return digits && v <= MUSD_MAX;
}

static bool unit_fits(const char *unit, bool storage)
{
    return storage ? strncasecmp(unit, "GB-Mo", 5) == 0
                   : strncasecmp(unit, "Hrs", 3) == 0 || strncasecmp(unit, "Hour", 4) == 0;
}

/* The dearest of the on-demand prices; 0: there is none. */
static bool dearest(const json_t *doc, bool storage, musd_t *ret, struct err *err)
{
    const json_t *offers = json_object_get(json_object_get(doc, "terms"), "OnDemand");
    const char *offer, *dimension;
    json_t *o, *d;
    int seen = 0;
    *ret = 0;
    json_object_foreach((json_t *)(uintptr_t)offers, offer, o)
    {
        json_object_foreach(json_object_get(o, "priceDimensions"), dimension, d)
        {
            const char *usd = text_at(json_object_get(d, "pricePerUnit"), "USD");
            musd_t musd;
            if (++seen > SCAN_DEPTH) {
                return err_set(err, ERR_TOO_LARGE, "more than %d prices of one product",
                               SCAN_DEPTH);
            }
            if (!unit_fits(text_at(d, "unit"), storage) || usd[0] == '\0') {
                continue;
            }
            if (!read_usd(usd, &musd)) {
                return err_set(err, ERR_INVALID, "'%.40s' is no amount of USD", usd);
            }
            *ret = MAX(*ret, musd);
        }
    }
    return true;
}

static bool set_key(struct price_value *v, const char *prefix, struct str name)
{
    int n = snprintf(v->key, sizeof v->key, "%s" STR_FMT, prefix, STR_ARG(name));
    return n > 0 && (size_t)n < sizeof v->key;
}

/* "ml.m5.large", also from "ml.m5.large-Training"; nothing: it is not one. */
static struct str instance_name(const json_t *attributes)
{
    static const char *const names[] = {"instanceName", "platoinstancename", "instanceType"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *name = text_at(attributes, names[i]);
        const char *dot = strrchr(name, '.');
        const char *dash = strrchr(name, '-'); /* "ml.p6-b200.48xlarge" has one of its own */
        if (strncmp(name, "ml.", 3) == 0 && dot != NULL) {
            size_t n = dash != NULL && dash > dot ? (size_t)(dash - name) : strlen(name);
            return (struct str){name, n};
        }
    }
    return (struct str){"", 0};
}

static bool instance_key(const json_t *attributes, struct price_value *ret)
{
    const char *use = text_at(attributes, "platoinstancetype");
    use = use[0] != '\0' ? use : text_at(attributes, "component");
    struct str name = instance_name(attributes);
    if (name.n == 0) {
        return false;
    }
    if (strcasecmp(use, "Training") == 0) {
        return set_key(ret, "", name);
    }
    return strcasecmp(use, "Hosting") == 0 && set_key(ret, "hosting:", name);
}

struct tier {
    const char *throughput, *deployment; /* MB/s a TiB of SSD; 200 are of SCRATCH_2, too */
};

/* By "125", "125 MB/s/TiB", "1,000 MBps"; NULL: it says nothing that is known. */
static const struct tier *tier_of(const json_t *attributes)
{
    static const struct tier tiers[] = {{"50", "PERSISTENT_1"},  {"100", "PERSISTENT_1"},
                                        {"200", "PERSISTENT_1"}, {"125", "PERSISTENT_2"},
                                        {"250", "PERSISTENT_2"}, {"500", "PERSISTENT_2"},
                                        {"1000", "PERSISTENT_2"}};
    char number[8] = "";
    size_t n = 0;
    for (const char *s = text_at(attributes, "throughputCapacity");
         (*s >= '0' && *s <= '9') || *s == ','; s++) {
        if (*s != ',' && n + 1 < sizeof number) {
            number[n++] = *s;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(tiers); i++) {
        if (strcmp(number, tiers[i].throughput) == 0) {
            return &tiers[i];
        }
    }
    return NULL;
}

/* The deployment by a word in any attribute, else by the throughput that only one of them has. */
static const char *deployment_of(const json_t *attributes)
{
    static const struct {
        const char *word, *deployment;
    } words[] = {{"scratch", "SCRATCH_2"},         {"persistent_2", "PERSISTENT_2"},
                 {"persistent-2", "PERSISTENT_2"}, {"persistent 2", "PERSISTENT_2"},
                 {"persistent2", "PERSISTENT_2"},  {"persistent_1", "PERSISTENT_1"},
                 {"persistent-1", "PERSISTENT_1"}, {"persistent 1", "PERSISTENT_1"},
                 {"persistent1", "PERSISTENT_1"}};
    const char *key;
    json_t *v;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        json_object_foreach((json_t *)(uintptr_t)attributes, key, v)
        {
            if (json_is_string(v) && has_word(json_string_value(v), words[i].word)) {
                return words[i].deployment;
            }
        }
    }
    const struct tier *tier = tier_of(attributes);
    return tier != NULL && strcmp(tier->throughput, "200") != 0 ? tier->deployment : NULL;
}

/* "storage:PERSISTENT_2/125"; without a throughput that the deployment has, it alone. */
static bool storage_key(const json_t *attributes, struct price_value *ret)
{
    char name[32];
    const char *disk = text_at(attributes, "storageType");
    const char *deployment = deployment_of(attributes);
    const struct tier *tier = tier_of(attributes);
    if (deployment == NULL || !has_word(text_at(attributes, "fileSystemType"), "Lustre") ||
        (disk[0] != '\0' && strcasecmp(disk, "SSD") != 0)) {
        return false;
    }
    bool known = tier != NULL && strcmp(tier->deployment, deployment) == 0;
    (void)snprintf(name, sizeof name, "%s%s%s", deployment, known ? "/" : "",
                   known ? tier->throughput : "");
    return set_key(ret, "storage:", str_of(name));
}

enum price_product price_product_read(struct str text, const char *region, struct price_value *ret,
                                      struct err *err)
{
    AUTO_JSON json_t *doc = NULL;
    if (!json_parse(text, PRICE_PRODUCT_MAX, &doc, err)) {
        return PRICE_PRODUCT_BROKEN;
    }
    const json_t *product = json_object_get(doc, "product");
    const json_t *attributes = json_object_get(product, "attributes");
    const char *where = text_at(attributes, "regionCode");
    const char *family = text_at(product, "productFamily");
    if (!json_is_object(attributes)) {
        (void)err_set(err, ERR_MALFORMED, "a product without attributes");
        return PRICE_PRODUCT_BROKEN;
    }
    bool storage = strcmp(family, "Storage") == 0;
    if (where[0] != '\0' && strcmp(where, region) != 0) {
        return PRICE_PRODUCT_OTHER;
    }
    if (storage ? !storage_key(attributes, ret) : !instance_key(attributes, ret)) {
        return PRICE_PRODUCT_OTHER;
    }
    if (!dearest(doc, storage, &ret->musd, err)) {
        return PRICE_PRODUCT_BROKEN;
    }
    return ret->musd > 0 ? PRICE_PRODUCT_READ : PRICE_PRODUCT_OTHER;
}

static bool add(struct price_reading *r, const struct price_value *v)
{
    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->list[i].key, v->key) == 0) {
            r->list[i].musd = MAX(r->list[i].musd, v->musd);
            return true;
        }
    }
    if (r->n == PRICE_VALUES_MAX) {
        return false;
    }
    if ((r->n & (r->n - 1)) == 0) { /* full at each power of two */
        r->list = xrealloc(r->list, (r->n == 0 ? 1 : 2 * r->n) * sizeof *r->list);
    }
    r->list[r->n++] = *v;
    return true;
}

bool price_reading_add(struct price_reading *r, const struct price_value *v)
{
    struct price_value all = *v;
    char *tier = strchr(all.key, '/');
    if (tier == NULL) {
        return add(r, v);
    }
    *tier = '\0'; /* the deployment alone is for a throughput that is not listed */
    return add(r, v) && add(r, &all);
}
