/* The table of settings of `index`. */
#include "index_options.h"
#include "job/settings.h"
#include "worker_protocol.h"

#define SETTING(name, flag, kind, dflt, min, max, field, words, help)                              \
    {#name, flag, SETTING_##kind, dflt, min, max, offsetof(struct index_options, field),           \
     words, help},
static const struct setting rows[] = {
#include "worker_index.def"
};

/* Words of that setting, "a,b", to bits: 1 for the first of those it takes, 2, 4... */
static unsigned bits_of(const char *name, const char *text)
{
    const char *words = setting_find(rows, ARRAY_LEN(rows), name)->words;
    unsigned bits = 0;
    struct str rest = str_of(text);
    while (rest.n > 0) {
        int at = setting_word(words, str_trim(str_split(&rest, ',')));
        bits |= at >= 0 ? 1u << at : 0;
    }
    return bits;
}

static void work_out_words(struct index_options *o, struct buf *faults)
{
    _Static_assert(LINE_PATH == 1 && LINE_KEY == 2 && LINE_IMAGE == 4 && LINE_OFFSET == 8 &&
                       LINE_SIZE == 16 && LINE_CAPTION == 32 && LINE_WIDTH == 64 &&
                       LINE_HEIGHT == 128,
                   "the words of fields come in this order");
    unsigned need = bits_of("require", o->require);
    o->scan.fields = bits_of("fields", o->fields);
    o->scan.need_txt = (need & 1) != 0;
    o->scan.need_json = (need & 2) != 0;
    if (str_trim(str_of(o->fields)).n == 0) {
        buf_add_cstr(faults, "fields is empty: a line needs one field at least\n");
    }
}

bool index_options_load(const json_t *hyperparameters, int argc, char *const *argv,
                        struct index_options *ret, struct buf *faults)
{
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
    const struct setting *mode = setting_find(rows, ARRAY_LEN(rows), "read_mode");
    o.mode = (enum source_mode)MAX(setting_word(mode->words, str_of(o.read_mode)), 0);
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
