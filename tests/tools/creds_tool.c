/* What our search for credentials and endpoints finds, for the comparison with botocore.
 *   creds_tool plan             where the keys come from, as one line of JSON
 *   creds_tool ini FILE         the file's keys, as JSON lists of section, key, value
 *   creds_tool endpoint SERVICE REGION */
#include "common/cleanup.h"
#include "common/creds_plan.h"
#include "common/endpoint.h"
#include "common/json.h"
#include "common/profiles.h"

static bool show_plan(struct json_out *w, struct err *err)
{
    static const char *const sources[] = {"keys", "web", "process", "container", "instance"};
    struct creds_plan p;
    if (!creds_plan_make(&p, err)) {
        return false;
    }
    json_out_object(w, NULL);
    json_out_str(w, "source", sources[p.source]);
    json_out_str(w, "place", p.place);
    json_out_str(w, "key", p.keys.key_id);
    json_out_str(w, "secret", p.keys.secret);
    json_out_str(w, "token", p.keys.session_token);
    json_out_str(w, "text", p.text);
    json_out_str(w, "web_arn", p.web.arn);
    json_out_str(w, "web_session", p.web.session);
    json_out_array(w, "roles");
    for (size_t i = 0; i < p.roles_n; i++) {
        json_out_array(w, NULL);
        json_out_str(w, NULL, p.roles[i].arn);
        json_out_str(w, NULL, p.roles[i].session);
        json_out_str(w, NULL, p.roles[i].external_id);
        json_out_i64(w, NULL, p.roles[i].duration_s);
        json_out_end_array(w);
    }
    json_out_end_array(w);
    json_out_end_object(w);
    creds_plan_done(&p);
    return true;
}

static bool show_ini(struct json_out *w, const char *path, struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT((size_t)1 << 20);
    bool found;
    struct ini i;
    if (!file_read_small(path, &text, &found, err) || !ini_parse(buf_str(&text), &i, err)) {
        return false;
    }
    json_out_array(w, NULL);
    for (size_t k = 0; k < i.n; k++) {
        json_out_array(w, NULL);
        json_out_str(w, NULL, i.rows[k].section);
        json_out_str(w, NULL, i.rows[k].key);
        json_out_str(w, NULL, i.rows[k].value);
        json_out_end_array(w);
    }
    json_out_end_array(w);
    ini_done(&i);
    return true;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf out = BUF_INIT((size_t)4 << 20);
    struct json_out w;
    json_out_init(&w, &out);
    bool ok = false;
    bool custom;
    if (argc == 2 && strcmp(argv[1], "plan") == 0) {
        ok = show_plan(&w, &err);
    } else if (argc == 3 && strcmp(argv[1], "ini") == 0) {
        ok = show_ini(&w, argv[2], &err);
    } else if (argc == 4 && strcmp(argv[1], "endpoint") == 0) {
        AUTO_FREE char *url = endpoint_url(argv[2], argv[3], &custom);
        buf_add_cstr(&out, url);
        ok = true;
    } else {
        (void)err_set(&err, ERR_INVALID, "usage: see the source");
    }
    (void)printf("%s\n", ok ? buf_cstr(&out) : err.message);
    return ok ? 0 : 1;
}
