/* The table of settings of `index`. */
#include "index_options.h"
#include "job/settings.h"

#define AT(field) offsetof(struct index_options, field)
static const struct setting rows[] = {
    {"input", "input_folder", SETTING_TEXT, "", 0, 0, AT(input),
     "folder or s3://bucket/prefix of the shards (at most 4 million .tar), channel:NAME; default: "
     "the only channel"},
    {"output_folder", "output", SETTING_TEXT, NULL, 0, 0, AT(output_folder),
     "folder or s3://bucket/prefix"},
    {"path_prefix", NULL, SETTING_TEXT, "auto", 0, 0, AT(path_prefix),
     "where the training job sees the input; auto: where it is now"},
    {"fields", NULL, SETTING_TEXT, "path,key,image,offset,size,caption", 0, 0, AT(fields),
     "of a line: path, key, image, offset, size, caption, width, height"},
    {"require", NULL, SETTING_TEXT, "txt,json", 0, 0, AT(require),
     "members a whole pair has besides its image: txt, json, none"},
    {"sample", NULL, SETTING_TEXT, "0", 0, 0, AT(sample),
     "fraction of the pairs, by hash of the key, that also goes into sample.jsonl"},
    {"rows", NULL, SETTING_INT, "0", 0, INT64_C(1000000000000), AT(scan.rows),
     "index only the first N whole pairs, in shard order, one shard at a time; 0: all"},
    {"strict", NULL, SETTING_FLAG, "false", 0, 0, AT(strict),
     "fail at the first bad archive or broken pair"},
    {"shards_at_once", "threads", SETTING_INT, "0", 0, INDEX_SHARDS_AT_ONCE_MAX, AT(shards_at_once),
     "shards read at once; 0: by the number of processors, more from S3"},
    {"read_mode", NULL, SETTING_TEXT, "auto", 0, 0, AT(read_mode),
     "auto, walk (headers only), stream (every byte in order)"},
    {"progress_interval", NULL, SETTING_INT, "60", 1, 3600, AT(progress_interval_s),
     "seconds between _progress.json"},
    {"stop_seconds", NULL, SETTING_INT, "90", 2, 115, AT(stop_s),
     "from SIGTERM to the end, at most"},
    {"checkpoint_seconds", NULL, SETTING_INT, "30", 1, 3600, AT(checkpoint_s),
     "between two times of saving how far the index is, for a run that goes on after a kill"},
};

struct word {
    const char *name;
    unsigned bit;
};

/* "a,b" to the bits of its words. */
static unsigned bits_of(const char *setting, const char *text, const struct word *words,
                        size_t words_n, struct buf *faults)
{
    unsigned bits = 0;
    struct str rest = str_of(text);
    while (rest.n > 0) {
        struct str w = str_trim(str_split(&rest, ','));
        size_t i = 0;
        while (i < words_n && !str_eq_cstr(w, words[i].name)) {
            i++;
        }
        if (i == words_n) {
            buf_addf(faults, "%s '%.*s': expected some of", setting, (int)MIN(w.n, (size_t)60),
                     w.p);
            for (size_t k = 0; k < words_n; k++) {
                buf_addf(faults, "%s %s", k == 0 ? "" : ",", words[k].name);
            }
            buf_add_cstr(faults, "\n");
        } else {
            bits |= words[i].bit;
        }
    }
    return bits;
}

static void work_out_words(struct index_options *o, struct buf *faults)
{
    static const struct word fields[] = {{"path", LINE_PATH},   {"key", LINE_KEY},
                                         {"image", LINE_IMAGE}, {"offset", LINE_OFFSET},
                                         {"size", LINE_SIZE},   {"caption", LINE_CAPTION},
                                         {"width", LINE_WIDTH}, {"height", LINE_HEIGHT}};
    static const struct word members[] = {{"txt", 1}, {"json", 2}, {"none", 0}};
    size_t before_n = faults->n;
    o->scan.fields = bits_of("fields", o->fields, fields, ARRAY_LEN(fields), faults);
    unsigned need = bits_of("require", o->require, members, ARRAY_LEN(members), faults);
    o->scan.need_txt = (need & 1) != 0;
    o->scan.need_json = (need & 2) != 0;
    if (o->scan.fields == 0 && faults->n == before_n) {
        buf_add_cstr(faults, "fields is empty: a line needs one field at least\n");
    }
}

bool index_options_load(const json_t *hyperparameters, int argc, char *const *argv,
                        struct index_options *ret, struct buf *faults)
{
    static const char *const modes[] = {"auto", "walk", "stream"};
    struct index_options o = {0};
    bool loaded =
        settings_load(rows, ARRAY_LEN(rows), &o, hyperparameters, argc, argv, NULL, faults);
    int64_t billionth = 0;
    work_out_words(&o, faults);
    if (!parse_decimal(str_of(o.sample), 9, 0, INT64_C(1000000000), &billionth, NULL)) {
        buf_addf(faults, "sample '%.60s': expected a fraction from 0 to 1\n", o.sample);
    }
    o.scan.sample = billionth > 0;
    o.scan.sample_below =
        (uint64_t)((((unsigned __int128)billionth << 64) / 1000000000) - (billionth > 0 ? 1 : 0));
    size_t m = 0;
    while (m < ARRAY_LEN(modes) && strcmp(o.read_mode, modes[m]) != 0) {
        m++;
    }
    if (m == ARRAY_LEN(modes)) {
        buf_addf(faults, "read_mode '%.60s': expected one of auto, walk, stream\n", o.read_mode);
    }
    o.mode = (enum source_mode)m;
    if (!loaded || faults->n > 0) {
        index_options_done(&o);
        return false;
    }
    *ret = o;
    return true;
}

void index_options_done(struct index_options *o)
{
    settings_done(rows, ARRAY_LEN(rows), o);
}

void index_options_help(struct buf *out)
{
    settings_help(rows, ARRAY_LEN(rows), out);
}
