/* The AWS profile files: see profiles.h. */
#include "profiles.h"
#include "common/cleanup.h"
#include <ctype.h>
#include <errno.h>
#include <pwd.h>

#define PROFILES_BYTES_MAX ((size_t)1024 * 1024)

const char *env_value(const char *name)
{
    const char *v = getenv(name);
    return v != NULL && v[0] != '\0' ? v : NULL;
}

const char *profiles_chosen(void)
{
    const char *p = env_value("AWS_DEFAULT_PROFILE");
    return p != NULL ? p : env_value("AWS_PROFILE");
}

/* Path of a profile file; caller frees. */
static char *file_path(const char *variable, const char *dflt)
{
    const char *v = env_value(variable);
    if (v != NULL && v[0] != '~') {
        return xstrdup(v);
    }
    const char *home = env_value("HOME");
    if (home == NULL) {
        const struct passwd *pw = getpwuid(getuid());
        home = pw != NULL && pw->pw_dir != NULL ? pw->pw_dir : "";
    }
    return xasprintf("%s%s", home, v != NULL ? v + 1 : dflt);
}

bool file_read_small(const char *path, struct buf *out, bool *ret_found, struct err *err)
{
    AUTO_FILE FILE *f = fopen(path, "re");
    *ret_found = f != NULL;
    if (f == NULL) {
        return errno == ENOENT || errno == ENOTDIR ||
               err_set_os(err, ERR_UNAUTHENTICATED, errno, "cannot open '%s'", path);
    }
    if (buf_add_file(out, f)) {
        return true;
    }
    return out->overflow
               ? err_set(err, ERR_TOO_LARGE, "'%s' is larger than %zu bytes", path, out->max)
               : err_set(err, ERR_UNAUTHENTICATED, "cannot read '%s'", path);
}

/* Split as a shell does. False: a quote is not closed. *ret_n counts all words; words[] holds the
 * first two. */
static bool two_words(const char *s, struct buf words[2], size_t *ret_n)
{
    char quote = '\0';
    bool inside = false;
    *ret_n = 0;
    for (; *s != '\0'; s++) {
        if (quote == '\0' && isspace((unsigned char)*s)) {
            *ret_n += inside;
            inside = false;
            continue;
        }
        inside = true;
        if (quote == '\0' && (*s == '"' || *s == '\'')) {
            quote = *s;
        } else if (*s == quote) {
            quote = '\0';
        } else {
            bool escape =
                *s == '\\' && (quote == '\0' || (quote == '"' && (s[1] == '"' || s[1] == '\\')));
            s += escape && s[1] != '\0';
            if (*ret_n < 2) {
                buf_add_char(&words[*ret_n], *s);
            }
        }
    }
    *ret_n += inside;
    return quote == '\0';
}

/* "default" and "profile x" to "p:default" and "p:x", anything else to "s:...". */
static char *config_name(const char *section)
{
    if (strcmp(section, "default") == 0) {
        return xstrdup("p:default");
    }
    if (str_starts(str_of(section), "profile")) {
        size_t n = strlen(section);
        struct buf words[2] = {BUF_INIT(n), BUF_INIT(n)};
        size_t words_n = 0;
        bool ok = two_words(section, words, &words_n) && words_n == 2;
        char *name = ok ? xasprintf("p:%s", buf_cstr(&words[1])) : NULL;
        buf_done(&words[0]);
        buf_done(&words[1]);
        if (ok) {
            return name;
        }
    }
    return strcmp(section, "DEFAULT") == 0 ? xstrdup(section) : xasprintf("s:%s", section);
}

/* Of two sections that name one profile ("[default]" and "[profile default]") the later counts. */
static void rename_sections(struct ini *i)
{
    for (size_t k = 0; k < i->n; k++) {
        char *name = config_name(i->rows[k].section);
        for (size_t m = 0; i->rows[k].key == NULL && m < k; m++) {
            if (strcmp(i->rows[m].section, name) == 0 && name[0] == 'p') {
                i->rows[m].section[0] = 'x';
            }
        }
        free(i->rows[k].section);
        i->rows[k].section = name;
    }
}

static bool load_file(const char *path, struct ini *ret, struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT(PROFILES_BYTES_MAX);
    bool found;
    if (!file_read_small(path, &text, &found, err)) {
        return false;
    }
    bool ok = ini_parse(buf_str(&text), ret, err);
    if (text.p != NULL) {
        explicit_bzero(text.p, text.n);
    }
    return ok || err_wrap(err, "%s", path);
}

bool profiles_load(struct profiles *ret, struct err *err)
{
    struct profiles p = {.config_path = file_path("AWS_CONFIG_FILE", "/.aws/config"),
                         .credentials_path =
                             file_path("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials")};
    if (!load_file(p.config_path, &p.config, err) ||
        !load_file(p.credentials_path, &p.credentials, err)) {
        profiles_done(&p);
        return false;
    }
    rename_sections(&p.config);
    *ret = p;
    return true;
}

void profiles_done(struct profiles *p)
{
    free(p->config_path);
    free(p->credentials_path);
    ini_done(&p->config);
    ini_done(&p->credentials);
    *p = (struct profiles){.config_path = NULL};
}

bool profiles_has(const struct profiles *p, const char *name)
{
    AUTO_FREE char *section = xasprintf("p:%s", name);
    return ini_section(&p->config, section) != NULL || ini_section(&p->credentials, name) != NULL;
}

const char *profiles_config_value(const struct profiles *p, const char *name, const char *key)
{
    AUTO_FREE char *section = xasprintf("p:%s", name);
    return ini_value(&p->config, section, key);
}

const char *profiles_credentials_value(const struct profiles *p, const char *name, const char *key)
{
    return ini_value(&p->credentials, name, key);
}

const char *profiles_value(const struct profiles *p, const char *name, const char *key)
{
    const char *v = profiles_credentials_value(p, name, key);
    return v != NULL ? v : profiles_config_value(p, name, key);
}

const char *profiles_service_value(const struct profiles *p, const char *services, const char *key)
{
    AUTO_FREE char *section = xasprintf("s:services %s", services);
    return ini_value(&p->config, section, key);
}
