/* What credentials are read from: INI files, answers in JSON and XML, commands, URIs. The first
 * byte chooses; the rest is read or refused, and keys that come out can go into a header. */
#include "common/cleanup.h"
#include "common/creds_answer.h"
#include "common/creds_process.h"
#include "common/ini.h"
#include "fuzz.h"

static void check_keys(bool ok, const struct aws_creds *c)
{
    ASSERT(!ok || (c->key_id[0] != '\0' && c->secret[0] != '\0'));
    for (const char *p = c->session_token; ok && *p != '\0'; p++) {
        ASSERT((unsigned char)*p > 0x20 && (unsigned char)*p < 0x7f);
    }
}

static void check_ini(struct str text)
{
    struct ini i;
    struct err err = ERR_INIT;
    bool ok = ini_parse(text, &i, &err);
    ASSERT(ok ? err.code == ERR_NONE : i.n == 0 && err.code != ERR_NONE);
    for (size_t k = 0; k < i.n; k++) {
        const struct ini_row *r = &i.rows[k];
        ASSERT(ini_section(&i, r->section) != NULL);
        if (r->key != NULL) {
            ASSERT(ini_value(&i, r->section, r->key) != NULL);
            (void)ini_nested(r->value, "endpoint_url");
        }
    }
    ini_done(&i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data + (size > 0), size - (size > 0)};
    struct aws_creds c = {.expires = 0};
    AUTO_FREE char *copy = str_dup(text);
    AUTO_FREE char *uri = NULL;
    AUTO_FREE char **words = NULL;
    size_t n = 0;
    switch (size > 0 ? data[0] : 'i') {
    case 'j':
        check_keys(creds_answer_json(text, CREDS_CONTAINER, &c, NULL), &c);
        check_keys(creds_answer_json(text, CREDS_PROCESS, &c, NULL), &c);
        break;
    case 'x':
        check_keys(creds_answer_xml(text, &c, NULL), &c);
        break;
    case 'c':
        ASSERT(!creds_process_split(copy, &words, &n) || (n > 0 && words[n] == NULL));
        break;
    case 'u':
        (void)!creds_container_uri(NULL, copy, &uri, NULL);
        break;
    default:
        check_ini(text);
        break;
    }
    return 0;
}
