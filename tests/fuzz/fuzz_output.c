/* An output folder that others wrote to: _part.json, _manifest.json, _mode.json and _stats.json of
 * any bytes. Each is read, or refused with a text; stats written again read the same. The first
 * byte says which file it is. */
#include "common/cleanup.h"
#include "download/part/incremental_mode.h"
#include "download/part/manifest_extend.h"
#include "download/part/part_record.h"
#include "fuzz.h"
#include "io/sink.h"
#include "job/stats.h"
#include "worker_protocol.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STATS_AGAIN_BYTES (64u << 20)

struct world {
    char dir[32], input[64];
    struct sink *sink;
    struct input in;
    struct download_options o;
    struct part_record *record;
};

static void world_remove(void);
static struct world w;

static void world_open(void)
{
    static const int64_t rows[] = {1};
    struct buf faults = BUF_INIT(4096);
    struct err err = ERR_INIT;
    w.in = (struct input){.name = w.input, .fd = -1};
    (void)snprintf(w.dir, sizeof w.dir, "/tmp/drover-fuzz-XXXXXX");
    ASSERT(mkdtemp(w.dir) != NULL);
    AUTO_FREE char *flag = xasprintf("--output=%s", w.dir);
    char *argv[] = {flag};
    ASSERT(options_load(NULL, 1, argv, &w.o, &faults));
    ASSERT(sink_open(w.dir, &w.sink, &err));
    (void)snprintf(w.input, sizeof w.input, "/proc/self/exe");
    input_add(&w.in, xstrdup(w.input), xstrdup(w.input));
    ASSERT(part_record_new(&w.o, &w.in, "7", rows, &w.record, &err));
    (void)atexit(world_remove);
}

static void world_remove(void)
{
    static const char *const names[] = {WP_MANIFEST_KEY, PART_RECORD_KEY,
                                        INCREMENTAL_MODE_MARKER_KEY};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *path = xasprintf("%s/%s", w.dir, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(w.dir);
}

static void told(bool ok, const struct err *err)
{
    ASSERT(ok || (err->code != ERR_NONE && err->message[0] != '\0'));
}

static void stats_again(struct str s)
{
    struct stats a = {0};
    struct stats b = {0};
    struct err err = ERR_INIT;
    if (!stats_parse(s, &a, &err)) {
        told(false, &err);
        return;
    }
    ASSERT(a.count >= 0);
    AUTO_BUF struct buf once = BUF_INIT(STATS_AGAIN_BYTES);
    AUTO_BUF struct buf twice = BUF_INIT(STATS_AGAIN_BYTES);
    stats_json(&a, &once);
    ASSERT(stats_parse(buf_str(&once), &b, &err));
    stats_json(&b, &twice);
    ASSERT(str_eq(buf_str(&once), buf_str(&twice)));
    stats_done(&a);
    stats_done(&b);
}

static void put(const char *name, struct str s)
{
    AUTO_FREE char *path = xasprintf("%s/%s", w.dir, name);
    FILE *f = fopen(path, "we");
    ASSERT(f != NULL);
    ASSERT(fwrite(s.p, 1, s.n, f) == s.n);
    (void)fclose(f);
}

static void ask(enum incremental_mode mode, const char *word, struct err *err)
{
    bool yes = false;
    int64_t resumed = -1;
    struct manifest_extend x = {0};
    struct shard_format f = {.rows_per_shard = 10000, .digits = 5, .first_shard = 3};
    w.o.mode = mode;
    free(w.o.incremental_mode);
    w.o.incremental_mode = xstrdup(word);
    told(incremental_mode_is_done(w.sink, &w.o, "7", &yes, err), err);
    *err = (struct err)ERR_INIT;
    told(incremental_mode_resumes(w.sink, &w.o, "7", &resumed, err), err);
    *err = (struct err)ERR_INIT;
    told(part_record_check(w.record, w.sink, yes, resumed, err), err);
    *err = (struct err)ERR_INIT;
    told(manifest_extend_load(w.sink, &f, &x, err), err);
    manifest_extend_done(&x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {WP_MANIFEST_KEY, PART_RECORD_KEY,
                                        INCREMENTAL_MODE_MARKER_KEY};
    struct err err = ERR_INIT;
    if (size < 1) {
        return 0;
    }
    struct str s = {(const char *)data + 1, size - 1};
    size_t which = data[0] % (ARRAY_LEN(names) + 1);
    if (which == ARRAY_LEN(names)) {
        stats_again(s);
        return 0;
    }
    if (w.sink == NULL) {
        world_open();
    }
    put(names[which], s);
    ask(MODE_INCREMENTAL, "incremental", &err);
    err = (struct err)ERR_INIT;
    ask(MODE_EXTEND, "extend", &err);
    ASSERT(sink_delete(w.sink, names[which], &err));
    return 0;
}
