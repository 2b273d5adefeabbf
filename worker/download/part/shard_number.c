/* See shard_number.h. */
#include "shard_number.h"
#include "common/cleanup.h"
#include "io/sink_tree.h"

static const char *const suffixes[] = {"_stats.json", ".parquet", ".tar", ".tfrecord", "/", NULL};

const char *shard_suffix(size_t i)
{
    return suffixes[i];
}

int64_t shard_number(const struct shard_format *f, const char *name)
{
    struct shard_format any = *f;
    any.first_shard = 0;
    for (size_t k = 0; suffixes[k] != NULL; k++) {
        int64_t n = shard_parse_name(&any, name, suffixes[k]);
        if (n >= 0) {
            return n;
        }
    }
    return -1;
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
