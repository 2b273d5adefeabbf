/* Answers that carry credentials: see creds_answer.h. */
#include "creds_answer.h"
#include "common/json.h"
#include "common/time_text.h"
#include "common/xml.h"

#define ANSWER_FIELD_BYTES_MAX ((size_t)8 * 1024)

static bool set_expiry(struct aws_creds *c, const char *text, struct err *err)
{
    return clock_parse_rfc3339(text, &c->expires, NULL) ||
           err_set(err, ERR_UNAUTHENTICATED, "the end of the credentials is no time");
}

static bool read_json(const json_t *o, enum creds_source from, struct aws_creds *ret,
                      struct err *err)
{
    static const char *const names[] = {[CREDS_PROCESS] = "the process",
                                        [CREDS_CONTAINER] = "the answer",
                                        [CREDS_INSTANCE] = "the answer"};
    bool process = from == CREDS_PROCESS;
    const char *code, *id, *secret, *token, *expires;
    if (!json_get_str(o, "Code", "Success", &code, err) ||
        !json_get_str(o, "AccessKeyId", "", &id, err) ||
        !json_get_str(o, "SecretAccessKey", "", &secret, err) ||
        !json_get_str(o, process ? "SessionToken" : "Token", "", &token, err) ||
        !json_get_str(o, "Expiration", NULL, &expires, err)) {
        return false;
    }
    if (from == CREDS_INSTANCE && strcmp(code, "Success") != 0) {
        return err_set(err, ERR_UNAUTHENTICATED, "the instance has no credentials: %.100s", code);
    }
    int64_t version;
    if (process &&
        (!json_get_i64(o, "Version", INT32_MIN, INT32_MAX, 0, &version, err) || version != 1)) {
        return err_set(err, ERR_UNAUTHENTICATED, "credential_process: its Version is not 1");
    }
    if (!process && (expires == NULL || token[0] == '\0')) {
        return err_set(err, ERR_UNAUTHENTICATED, "the answer lacks Token or Expiration");
    }
    struct aws_creds c;
    if (!creds_set_keys(&c, str_of(id), str_of(secret), str_of(token), names[from], err) ||
        (expires != NULL && !set_expiry(&c, expires, err))) {
        return false;
    }
    *ret = c;
    return true;
}

bool creds_answer_json(struct str body, enum creds_source from, struct aws_creds *ret,
                       struct err *err)
{
    AUTO_JSON json_t *o = NULL;
    if (!json_parse(body, body.n, &o, NULL) || !json_is_object(o)) {
        return err_set(err, ERR_UNAUTHENTICATED, "the answer is no JSON object");
    }
    if (!read_json(o, from, ret, err)) {
        if (err != NULL) {
            err->code = ERR_UNAUTHENTICATED;
        }
        return false;
    }
    return true;
}

bool creds_answer_xml(struct str body, struct aws_creds *ret, struct err *err)
{
    static const char *const names[] = {"AccessKeyId", "SecretAccessKey", "SessionToken",
                                        "Expiration"};
    struct buf texts[ARRAY_LEN(names)];
    bool ok = true;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        buf_init(&texts[i], ANSWER_FIELD_BYTES_MAX);
        ok = xml_find(body, names[i], &texts[i]) && !texts[i].overflow && ok;
    }
    struct aws_creds c;
    ok = ok || err_set(err, ERR_UNAUTHENTICATED, "the answer of STS has no credentials");
    ok = ok &&
         creds_set_keys(&c, str_trim(buf_str(&texts[0])), str_trim(buf_str(&texts[1])),
                        str_trim(buf_str(&texts[2])), "the answer of STS", err) &&
         set_expiry(&c, buf_cstr(&texts[3]), err);
    if (ok) {
        *ret = c;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (texts[i].p != NULL) {
            explicit_bzero(texts[i].p, texts[i].n);
        }
        buf_done(&texts[i]);
    }
    return ok;
}
