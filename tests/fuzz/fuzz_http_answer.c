/* What servers answer: header lines in any order and of any bytes leave a transfer whose status,
 * words and waiting time are within bounds, judged to one of four ends with a text fit for JSON.
 * The first byte says how curl ended, the lines follow. */
#include "common/clock.h"
#include "download/fetch/fetch.h"
#include "download/fetch/transfer.h"
#include "fuzz.h"

static CURL *easy;

static void feed(struct transfer *t, struct str bytes)
{
    struct robots r = {.directives = {STR("noai"), STR("noindex")}, .n = 2, .token = STR("me")};
    while (bytes.n > 0) {
        transfer_header(t, str_split(&bytes, '\n'), &r);
        ASSERT(t->status == 0 || (t->status >= 100 && t->status <= 999));
        ASSERT(strlen(t->reason) < sizeof t->reason);
        ASSERT(t->retry_after_us >= 0);
        ASSERT(!t->forbidden || (t->status >= 200 && t->status < 300));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const CURLcode ends[] = {CURLE_OK,
                                    CURLE_OPERATION_TIMEDOUT,
                                    CURLE_COULDNT_CONNECT,
                                    CURLE_GOT_NOTHING,
                                    CURLE_PARTIAL_FILE,
                                    CURLE_RECV_ERROR,
                                    CURLE_WRITE_ERROR,
                                    CURLE_FILESIZE_EXCEEDED,
                                    CURLE_SSL_CONNECT_ERROR,
                                    CURLE_PEER_FAILED_VERIFICATION,
                                    CURLE_WEIRD_SERVER_REPLY};
    if (size < 1) {
        return 0;
    }
    if (easy == NULL) {
        (void)curl_global_init(CURL_GLOBAL_DEFAULT);
        easy = curl_easy_init();
        ASSERT(easy != NULL);
    }
    struct transfer t = {.easy = easy, .state = TRANSFER_RUNNING};
    struct sample s = {0};
    struct verdict v;
    transfer_reset_hop(&t);
    feed(&t, (struct str){(const char *)data + 1, size - 1});
    transfer_judge(&t, ends[data[0] % ARRAY_LEN(ends)], &v);
    ASSERT(memchr(v.text, '\0', sizeof v.text) != NULL);
    if (v.kind == VERDICT_OK) {
        ASSERT(t.status >= 200 && t.status < 300 && !t.forbidden);
        return 0;
    }
    ASSERT(v.text[0] != '\0' || v.kind == VERDICT_REDIRECT);
    sample_fail(&s, STATUS_FAILED_TO_DOWNLOAD, "%s", v.text);
    ASSERT(str_is_utf8(str_of(s.error)));
    for (const char *p = s.error; *p != '\0'; p++) {
        ASSERT((unsigned char)*p >= 0x20 && *p != 0x7f);
    }
    return 0;
}
