/* Settings as flags of any bytes, one a line: they load, or every fault is told; what loads gives a
 * command of a second pass that a shell reads as one line, and the same settings give the same
 * shape. */
#include "common/cleanup.h"
#include "common/setting_value.h"
#include "download/part/options.h"
#include "download/part/second_pass.h"
#include "fuzz.h"

#define ARGS_MAX 32

static void values(const char *text)
{
    int64_t n = 0;
    double x = 0;
    char *words[8];
    const char *why = NULL;
    AUTO_FREE char *store = NULL;
    if (value_int(text, -5, 1000, &n)) {
        ASSERT(n >= -5 && n <= 1000);
    }
    if (value_real(text, &x)) {
        ASSERT(x > 0);
    }
    int found = value_list(text, &store, words, ARRAY_LEN(words), &why);
    ASSERT(found >= 0 || why != NULL);
    ASSERT(found <= (int)ARRAY_LEN(words));
    for (int i = 0; i < found; i++) {
        ASSERT(strlen(words[i]) <= strlen(text) * 3);
    }
}

/* Quotes are closed, and no line ends outside of them. */
static void is_one_line(const char *command)
{
    bool quoted = false;
    for (const char *p = command; *p != '\0'; p++) {
        if (*p == '\\' && !quoted) {
            ASSERT(p[1] != '\0');
            p++;
        } else if (*p == '\'') {
            quoted = !quoted;
        } else {
            ASSERT(quoted || *p == ' ' ||
                   (*p > 0x20 && *p < 0x7f && strchr("$`\"&|;<>()*?[]#~!{}", *p) == NULL));
        }
    }
    ASSERT(!quoted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[ARGS_MAX];
    int argc = 0;
    AUTO_FREE char *text = xstrndup((const char *)data, size);
    AUTO_BUF struct buf faults = BUF_INIT(64u << 10);
    AUTO_BUF struct buf command = BUF_INIT(1u << 20);
    struct download_options o;
    values(text);
    for (char *p = text; p != NULL && argc < ARGS_MAX;) {
        argv[argc++] = p;
        p = strchr(p, '\n');
        if (p != NULL) {
            *p++ = '\0';
        }
    }
    if (!options_load(NULL, argc, argv, &o, &faults)) {
        ASSERT(faults.n > 0);
        return 0;
    }
    json_t *shape = options_shape(&o);
    ASSERT(shape != NULL);
    json_decref(shape);
    if (second_pass_command(&o, "drover-worker", 0, &command) && !command.overflow) {
        is_one_line(buf_cstr(&command));
    }
    options_done(&o);
    return 0;
}
