/* The name of an attempt's job, which is the idempotency key of its Create. ListTrainingJobs
 * filters by the prefix, so a long name loses characters of the stage first. */
#include "protocol.h"

#define NAME_TAIL_MAX 64

static bool is_name_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Append `s` to out[*n]: at most max characters. Characters other than letters and digits become
 * hyphens, with none at either end. */
static void add_word(char *out, size_t *n, const char *s, size_t max)
{
    size_t begin = *n;
    for (; *s != '\0' && *n - begin < max; s++) {
        if (is_name_char(*s)) {
            out[(*n)++] = *s;
        } else if (*n > begin) {
            out[(*n)++] = '-';
        }
    }
    while (*n > begin && out[*n - 1] == '-') {
        (*n)--;
    }
}

static void add_number(char *out, size_t *n, int64_t v)
{
    char digits[20];
    size_t k = 0;
    do {
        digits[k++] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    while (k > 0) {
        out[(*n)++] = digits[--k];
    }
}

void protocol_job_prefix(const char *prefix, char ret[static JOB_PREFIX_MAX + 1])
{
    size_t n = 0;
    add_word(ret, &n, prefix, JOB_PREFIX_MAX);
    if (n == 0) {
        ret[n++] = 'd';
    }
    ret[n] = '\0';
}

void protocol_job_name(const char *prefix, int64_t campaign_id, const char *stage_name,
                       int64_t task_seq, int n, const uint8_t identity_sha256[32],
                       struct job_name *ret)
{
    ASSERT(campaign_id >= 0 && task_seq >= 0 && n >= 1);
    /* The tail identifies the attempt and is never cut: at most 19 + 19 + 10 digits, hash,
     * hyphens. */
    char campaign[24] = "-";
    size_t campaign_n = 1;
    add_number(campaign, &campaign_n, campaign_id);
    char tail[NAME_TAIL_MAX] = "-";
    size_t tail_n = 1;
    add_number(tail, &tail_n, task_seq);
    tail[tail_n++] = '-';
    tail[tail_n++] = 'a';
    add_number(tail, &tail_n, n);
    tail[tail_n++] = '-';
    for (int i = 0; i < 4; i++) {
        tail[tail_n++] = "0123456789abcdef"[identity_sha256[i] >> 4];
        tail[tail_n++] = "0123456789abcdef"[identity_sha256[i] & 15];
    }
    size_t room = JOB_NAME_MAX - campaign_n - tail_n;
    char *out = ret->s;
    size_t out_n = 0;
    add_word(out, &out_n, prefix, MIN(room, (size_t)JOB_PREFIX_MAX));
    if (out_n == 0) {
        out[out_n++] = 'd';
    }
    room -= out_n;
    memcpy(out + out_n, campaign, campaign_n);
    out_n += campaign_n;
    if (room > 1) {
        size_t begin = out_n++;
        out[begin] = '-';
        add_word(out, &out_n, stage_name, room - 1);
        if (out_n == begin + 1) {
            out_n = begin; /* nothing of the stage's name is left */
        }
    }
    memcpy(out + out_n, tail, tail_n);
    out_n += tail_n;
    ASSERT(out_n <= JOB_NAME_MAX);
    out[out_n] = '\0';
}
