/* See shard_number.h. */
#include "shard_number.h"
#include "common/cleanup.h"
#include "io/sink_tree.h"

#define DIGITS_MAX 20 /* no run writes more; a name may be longer than a sink's names can be */

static const char *const suffixes[] = {"_stats.json", ".parquet", ".tar", ".tfrecord", "/", NULL};

const char *shard_suffix(size_t i)
{
    return suffixes[i];
}

bool shard_is_name(const char *name, const char *suffix)
{
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && digits <= DIGITS_MAX && strcmp(name + digits, suffix) == 0;
}

int64_t shard_number(const struct shard_format *f, const char *name)
{
    struct shard_format any = *f;
    any.first_shard = 0;
    size_t digits = strspn(name, "0123456789");
    for (size_t k = 0; suffixes[k] != NULL; k++) {
        int64_t n;
        bool folder = strcmp(suffixes[k], "/") == 0;
        if (folder && shard_parse_name(&any, name, suffixes[k]) >= 0) {
            return shard_parse_name(&any, name, suffixes[k]);
        }
        if (!folder && shard_is_name(name, suffixes[k]) &&
            parse_i64((struct str){name, digits}, 0, INT64_MAX / 2, &n, NULL)) {
            return n;
        }
    }
    return -1;
}

bool shard_is_folder_of(const struct sink_listing *l, const char *name)
{
    int n = (int)strspn(name, "0123456789");
    char sibling[SHARD_KEY_BYTES];
    if (!shard_is_name(name, "/")) {
        return false;
    }
    (void)snprintf(sibling, sizeof sibling, "%.*s_stats.json", n, name);
    if (sink_listing_find(l, sibling) != NULL) {
        return true;
    }
    (void)snprintf(sibling, sizeof sibling, "%.*s.parquet", n, name);
    return sink_listing_find(l, sibling) != NULL;
}

bool shard_object_delete(struct sink *sink, const char *name, struct err *err)
{
    size_t n = strlen(name);
    if (n == 0 || name[n - 1] != '/') {
        return sink_delete(sink, name, err);
    }
    AUTO_FREE char *folder = xstrndup(name, n - 1);
    return sink_tree_delete(sink, folder, err);
}
