/* The bytes of a web server's answer, the whole way: curl reads them from its socket, the fetch
 * thread's own callbacks take headers and body, the verdict is judged, and a redirect's URL is read
 * as the next hop's would be. socket() and connect() are ours: they hand out a pair whose other end
 * has said everything already. */
#include "download/fetch/fetch_curl.h"
#include "download/part/sample.h"
#include "fuzz.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ANSWER_MAX (96u << 10)
#define PASSES_MAX 200

static int offered = -1;

int socket(int domain, int type, int protocol)
{
    if (offered >= 0) {
        int fd = offered;
        offered = -1;
        return fd;
    }
    return (int)syscall(SYS_socket, domain, type, protocol);
}

int connect(int fd UNUSED, const struct sockaddr *sa UNUSED, socklen_t n UNUSED)
{
    return 0;
}

static struct pipeline run;
static struct download_options options;
static struct fetch fetch;
static struct transfer transfer;
static struct sample sample; /* whose transfer it is */

static void heard(void *private UNUSED)
{
}

static void set_up(void)
{
    char why[URL_WHY_BYTES];
    struct err err = ERR_INIT;
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    url_setup();
    ASSERT(addr_parse_rule(STR("127.0.0.1:80"), &options.rules.at[0], &err));
    options.rules.n = 1;
    options.robots =
        (struct robots){.directives = {STR("noai"), STR("noindex")}, .n = 2, .token = STR("me")};
    run.o = &options;
    fetch.run = &run;
    ASSERT(fetch_io_init(&fetch.io, heard, &err));
    transfer.fetch = &fetch;
    transfer.sample = &sample;
    buf_init(&transfer.body, IMAGE_BODY_BYTES_MAX);
    ASSERT(url_parse(STR("http://127.0.0.1/a/b?c"), &transfer.url, why));
    ASSERT(addr_parse_host("127.0.0.1", &transfer.addrs[0]));
    transfer.addrs_n = 1;
}

/* How curl ends with it. */
static CURLcode answered(const uint8_t *data, size_t size)
{
    int pair[2];
    int most = (int)ANSWER_MAX * 2;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        abort();
    }
    (void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &most, sizeof most);
    (void)!write(pair[1], data, MIN(size, (size_t)ANSWER_MAX));
    (void)shutdown(pair[1], SHUT_WR);
    offered = pair[0];
    sample.place.redirects = 0;
    fetch_curl_start(&fetch, &transfer);
    (void)curl_easy_setopt(transfer.easy, CURLOPT_FORBID_REUSE, 1L);
    CURLcode rc = CURLE_OPERATION_TIMEDOUT;
    for (int i = 0; i < PASSES_MAX; i++) {
        int left;
        fetch_io_pass(&fetch.io, 0);
        const CURLMsg *m = curl_multi_info_read(fetch.io.multi, &left);
        if (m != NULL) {
            rc = m->data.result;
            break;
        }
    }
    (void)curl_multi_remove_handle(fetch.io.multi, transfer.easy);
    (void)close(pair[1]);
    if (offered >= 0) {
        (void)close(offered);
        offered = -1;
    }
    return rc;
}

static void check_text(const char *text)
{
    struct sample s = {0};
    ASSERT(text[0] != '\0');
    sample_fail(&s, STATUS_FAILED_TO_DOWNLOAD, "%s", text);
    ASSERT(str_is_utf8(str_of(s.error)));
    for (const char *p = s.error; *p != '\0'; p++) {
        ASSERT((unsigned char)*p >= 0x20 && *p != 0x7f);
    }
}

static void check_hop(const char *location)
{
    struct url next;
    char why[URL_WHY_BYTES] = "";
    if (!url_parse(str_of(location), &next, why)) {
        check_text(why);
        return;
    }
    ASSERT(strncmp(next.text, "http://", 7) == 0 || strncmp(next.text, "https://", 8) == 0);
    ASSERT(next.host[0] != '\0' && next.port > 0);
    url_done(&next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct verdict v;
    if (fetch.run == NULL) {
        set_up();
    }
    CURLcode rc = answered(data, size);
    transfer_judge(&transfer, rc, &v);
    ASSERT(transfer.body.n <= size && !transfer.blocked);
    ASSERT(transfer.status == 0 || (transfer.status >= 100 && transfer.status <= 999));
    ASSERT(transfer.retry_after_us >= 0);
    switch (v.kind) {
    case VERDICT_OK:
        ASSERT(rc == CURLE_OK && transfer.status >= 200 && transfer.status < 300);
        ASSERT(!transfer.forbidden);
        break;
    case VERDICT_REDIRECT:
        ASSERT(transfer.status >= 300 && transfer.status < 400);
        check_hop(v.location);
        break;
    case VERDICT_TRANSIENT:
    case VERDICT_FAILED:
        check_text(v.text);
        break;
    }
    fetch.bytes -= transfer.body.n;
    buf_reset(&transfer.body);
    fetch.privileged = NULL;
    return 0;
}
