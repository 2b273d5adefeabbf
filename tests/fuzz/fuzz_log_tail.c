/* Any lines of any hosts: the evidence is within its bounds, and a cause comes with its line. A
 * line of the input is a host, a character for the time, and the text. */
#include "common/cleanup.h"
#include "core/failure/log_tail.h"
#include "fuzz.h"

#define LINES_MAX 300

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct log_line lines[LINES_MAX];
    struct str rest = {(const char *)data, size};
    size_t n = 0;
    while (rest.n > 0 && n < LINES_MAX) {
        struct str line = str_split(&rest, '\n');
        struct str host = str_split(&line, ' ');
        lines[n++] = (struct log_line){
            .time = line.n > 0 ? (unsigned char)line.p[0] : 0, .host = host, .text = line};
    }
    struct log_tail_evidence e;
    log_tail_read(lines, n, &e);
    ASSERT(e.cause > CAUSE_NONE && e.cause < CAUSE_COUNT);
    ASSERT(strlen(e.host) <= LOG_TAIL_HOST_MAX && strlen(e.text) <= LOG_TAIL_TEXT_MAX);
    ASSERT(e.text[0] != '\0' || e.cause == CAUSE_UNKNOWN);
    return 0;
}
