/* See time_text.h. The calendar arithmetic is our own (days from civil, Howard Hinnant's
 * algorithm), so it uses no time zone and no C library state. */
#include "common/time_text.h"
#include "common/str.h"

#define YEAR_MIN_S INT64_C(-62167219200) /* 0000-01-01T00:00:00Z */
#define YEAR_MAX_S INT64_C(253402300799) /* 9999-12-31T23:59:59Z */

static const char month_names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char day_names[7][4] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};

struct civil { /* proleptic Gregorian calendar, UTC */
    int year, month, day, hour, minute, second, micros;
    int weekday; /* 0 = Thursday, the day of the epoch */
};

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

static int64_t days_of(int64_t year, int month, int day)
{
    int64_t y = year - (month <= 2 ? 1 : 0);
    int64_t era = floor_div(y, 400);
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

/* Instants outside the years 0000 to 9999 are clamped: no text form can hold them. */
static struct civil civil_of(usec_t t)
{
    int64_t s = floor_div(t, USEC_PER_SEC);
    int64_t micros = t % USEC_PER_SEC;
    micros += micros < 0 ? USEC_PER_SEC : 0; /* s * USEC_PER_SEC may overflow */
    if (s < YEAR_MIN_S) {
        s = YEAR_MIN_S;
        micros = 0;
    } else if (s > YEAR_MAX_S) {
        s = YEAR_MAX_S;
        micros = USEC_PER_SEC - 1;
    }
    int64_t days = floor_div(s, 86400);
    int64_t rest = s - days * 86400;
    int64_t z = days + 719468;
    int64_t era = floor_div(z, 146097);
    int64_t day_of_era = z - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t mp = (5 * day_of_year + 2) / 153;
    int64_t month = mp < 10 ? mp + 3 : mp - 9;
    return (struct civil){
        .year = (int)(year_of_era + era * 400 + (month <= 2 ? 1 : 0)),
        .month = (int)month,
        .day = (int)(day_of_year - (153 * mp + 2) / 5 + 1),
        .hour = (int)(rest / 3600),
        .minute = (int)(rest / 60 % 60),
        .second = (int)(rest % 60),
        .micros = (int)micros,
        .weekday = (int)(days - floor_div(days, 7) * 7),
    };
}

/* n decimal digits of v at p; returns what follows them. */
static char *put_digits(char *p, int v, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        p[i] = (char)('0' + v % 10);
        v /= 10;
    }
    return p + n;
}

static char *put_time(char *p, const struct civil *c)
{
    p = put_digits(p, c->hour, 2);
    *p++ = ':';
    p = put_digits(p, c->minute, 2);
    *p++ = ':';
    return put_digits(p, c->second, 2);
}

void clock_format_rfc3339(usec_t t, bool micros, char out[static 32])
{
    struct civil c = civil_of(t);
    char *p = put_digits(out, c.year, 4);
    *p++ = '-';
    p = put_digits(p, c.month, 2);
    *p++ = '-';
    p = put_digits(p, c.day, 2);
    *p++ = 'T';
    p = put_time(p, &c);
    if (micros) {
        *p++ = '.';
        p = put_digits(p, c.micros, 6);
    }
    *p++ = 'Z';
    *p = '\0';
}

void clock_format_amz(usec_t t, char out[static 17])
{
    struct civil c = civil_of(t);
    char *p = put_digits(out, c.year, 4);
    p = put_digits(p, c.month, 2);
    p = put_digits(p, c.day, 2);
    *p++ = 'T';
    p = put_digits(p, c.hour, 2);
    p = put_digits(p, c.minute, 2);
    p = put_digits(p, c.second, 2);
    *p++ = 'Z';
    *p = '\0';
}

void clock_format_http(usec_t t, char out[static 30])
{
    struct civil c = civil_of(t);
    char *p = out;
    memcpy(p, day_names[c.weekday], 3);
    memcpy(p + 3, ", ", 2);
    p = put_digits(p + 5, c.day, 2);
    *p++ = ' ';
    memcpy(p, month_names[c.month - 1], 3);
    p[3] = ' ';
    p = put_digits(p + 4, c.year, 4);
    *p++ = ' ';
    p = put_time(p, &c);
    memcpy(p, " GMT", 5);
}

/* Takes exactly n digits off *s. */
static bool take_digits(const char **s, int n, int *ret)
{
    int v = 0;
    for (int i = 0; i < n; i++) {
        char c = (*s)[i];
        if (c < '0' || c > '9') {
            return false;
        }
        v = v * 10 + (c - '0');
    }
    *s += n;
    *ret = v;
    return true;
}

static bool take_char(const char **s, char c)
{
    if (**s != c) {
        return false;
    }
    (*s)++;
    return true;
}

static bool take_time(const char **s, struct civil *c)
{
    return take_digits(s, 2, &c->hour) && take_char(s, ':') && take_digits(s, 2, &c->minute) &&
           take_char(s, ':') && take_digits(s, 2, &c->second);
}

/* Leap seconds (second 60) are refused: POSIX time has none, and AWS never sends one. */
static bool instant_of(const struct civil *c, usec_t *ret)
{
    static const int month_days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (c->month < 1 || c->month > 12) {
        return false;
    }
    bool leap = (c->year % 4 == 0 && c->year % 100 != 0) || c->year % 400 == 0;
    int days = month_days[c->month - 1] + (c->month == 2 && leap ? 1 : 0);
    if (c->day < 1 || c->day > days || c->hour > 23 || c->minute > 59 || c->second > 59) {
        return false;
    }
    int64_t s =
        days_of(c->year, c->month, c->day) * 86400 + c->hour * 3600 + c->minute * 60 + c->second;
    *ret = s * USEC_PER_SEC + c->micros;
    return true;
}

/* ".5", ".123456789": one to nine digits, cut to microseconds. */
static bool take_fraction(const char **s, int *ret_micros)
{
    int v = 0;
    int n = 0;
    for (; **s >= '0' && **s <= '9'; (*s)++, n++) {
        if (n < 6) {
            v = v * 10 + (**s - '0');
        }
    }
    for (int i = n; i < 6; i++) {
        v *= 10;
    }
    *ret_micros = v;
    return n >= 1 && n <= 9;
}

/* "Z" or "+02:00", as microseconds to subtract. */
static bool take_zone(const char **s, int64_t *ret_us)
{
    if (take_char(s, 'Z') || take_char(s, 'z')) {
        *ret_us = 0;
        return true;
    }
    int64_t sign = **s == '-' ? -1 : 1;
    int hours, minutes;
    if ((!take_char(s, '+') && !take_char(s, '-')) || !take_digits(s, 2, &hours) ||
        !take_char(s, ':') || !take_digits(s, 2, &minutes) || hours > 23 || minutes > 59) {
        return false;
    }
    *ret_us = sign * (hours * 3600 + minutes * 60) * USEC_PER_SEC;
    return true;
}

bool clock_parse_rfc3339(const char *s, usec_t *ret, struct err *err)
{
    struct civil c = {0};
    const char *p = s;
    usec_t t;
    int64_t zone_us;
    bool ok = take_digits(&p, 4, &c.year) && take_char(&p, '-') && take_digits(&p, 2, &c.month) &&
              take_char(&p, '-') && take_digits(&p, 2, &c.day) &&
              (take_char(&p, 'T') || take_char(&p, 't')) && take_time(&p, &c) &&
              (!take_char(&p, '.') || take_fraction(&p, &c.micros)) && take_zone(&p, &zone_us) &&
              *p == '\0' && instant_of(&c, &t);
    if (!ok) {
        return err_set(err, ERR_INVALID, "not an RFC 3339 time: '%.64s'", s);
    }
    *ret = t - zone_us;
    return true;
}

bool clock_parse_amz(const char *s, usec_t *ret, struct err *err)
{
    struct civil c = {0};
    const char *p = s;
    usec_t t;
    bool ok = take_digits(&p, 4, &c.year) && take_digits(&p, 2, &c.month) &&
              take_digits(&p, 2, &c.day) && take_char(&p, 'T') && take_digits(&p, 2, &c.hour) &&
              take_digits(&p, 2, &c.minute) && take_digits(&p, 2, &c.second) &&
              take_char(&p, 'Z') && *p == '\0' && instant_of(&c, &t);
    if (!ok) {
        return err_set(err, ERR_INVALID, "not a time of the form 20260102T030405Z: '%.64s'", s);
    }
    *ret = t;
    return true;
}

/* Index of the name at *s; -1 when there is none. */
static int take_name(const char **s, const char names[][4], int n)
{
    for (int i = 0; i < n; i++) {
        if (strncmp(*s, names[i], 3) == 0) {
            *s += 3;
            return i;
        }
    }
    return -1;
}

/* The weekday must be a valid name but may not match the date: senders get it wrong. */
bool clock_parse_http(const char *s, usec_t *ret, struct err *err)
{
    struct civil c = {0};
    const char *p = s;
    usec_t t;
    bool ok = take_name(&p, day_names, 7) >= 0 && take_char(&p, ',') && take_char(&p, ' ') &&
              take_digits(&p, 2, &c.day) && take_char(&p, ' ') &&
              (c.month = take_name(&p, month_names, 12) + 1) > 0 && take_char(&p, ' ') &&
              take_digits(&p, 4, &c.year) && take_char(&p, ' ') && take_time(&p, &c) &&
              strcmp(p, " GMT") == 0 && instant_of(&c, &t);
    if (!ok) {
        return err_set(err, ERR_INVALID, "not an HTTP date: '%.64s'", s);
    }
    *ret = t;
    return true;
}
