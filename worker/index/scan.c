/* Groups members into pairs and pairs into lines. */
#include "scan.h"
#include "common/json.h"
#include "meta.h"

enum member_kind { KIND_OTHER, KIND_IMAGE, KIND_TXT, KIND_JSON };

const char *pair_fault_text(enum pair_fault f)
{
    static const char *const texts[] = {
        [PAIR_WHOLE] = "success",
        [PAIR_NO_IMAGE] = "no image",
        [PAIR_NO_TXT] = "no txt",
        [PAIR_NO_JSON] = "no json",
        [PAIR_EMPTY_IMAGE] = "empty image",
        [PAIR_TWICE] = "two members of one kind",
        [PAIR_TOO_LARGE] = "too large",
        [PAIR_BAD_JSON] = "json cannot be read",
        [PAIR_NO_SIZE] = "json has no width and height",
    };
    _Static_assert(ARRAY_LEN(texts) == PAIR_FAULT_COUNT, "every fault has a text");
    return texts[f];
}

int64_t scan_counts_pairs(const struct scan_counts *c)
{
    int64_t n = 0;
    for (size_t i = 0; i < PAIR_FAULT_COUNT; i++) {
        n += c->pairs[i];
    }
    return n;
}

void scan_counts_add(struct scan_counts *to, const struct scan_counts *c)
{
    for (size_t i = 0; i < PAIR_FAULT_COUNT; i++) {
        to->pairs[i] += c->pairs[i];
    }
    to->members += c->members;
    to->sampled += c->sampled;
    to->others += c->others;
    to->bad_tars += c->bad_tars;
}

void scan_out_init(struct scan_out *o)
{
    buf_init(&o->lines, SCAN_OUT_BYTES_MAX);
    buf_init(&o->sample, SCAN_OUT_BYTES_MAX);
    buf_init(&o->broken, SCAN_OUT_BYTES_MAX);
}

void scan_out_done(struct scan_out *o)
{
    buf_done(&o->lines);
    buf_done(&o->sample);
    buf_done(&o->broken);
}

void scan_out_reset(struct scan_out *o)
{
    buf_reset(&o->lines);
    buf_reset(&o->sample);
    buf_reset(&o->broken);
}

void scan_init(struct scan *s, const struct scan_config *config, struct source *src)
{
    *s = (struct scan){.config = config, .src = src};
    buf_init(&s->path_, 1u << 20);
    buf_init(&s->caption_, 6 * (size_t)SCAN_TXT_BYTES_MAX + 2);
}

void scan_done(struct scan *s)
{
    buf_done(&s->path_);
    buf_done(&s->caption_);
}

/* Append a line to the list of broken pairs. key may be empty. */
static void tell(struct scan *s, struct str key, int64_t at, const char *what)
{
    if (s->broken_n_++ >= SCAN_BROKEN_LINES_MAX) {
        return;
    }
    struct json_out w;
    json_out_init(&w, &s->out->broken);
    json_out_object(&w, NULL);
    json_out_raw(&w, "path", buf_str(&s->path_));
    if (key.n > 0) {
        json_out_strn(&w, "key", key);
    }
    json_out_i64(&w, "offset", at);
    json_out_str(&w, "error", what);
    json_out_end_object(&w);
    buf_add_char(&s->out->broken, '\n');
}

static void note_fault(struct scan *s, enum pair_fault f)
{
    s->fault_ = s->fault_ == PAIR_WHOLE ? f : s->fault_;
}

static enum member_kind kind_of(struct str suffix)
{
    char low[4] = {0};
    if (suffix.n < 3 || suffix.n > 4) {
        return KIND_OTHER;
    }
    for (size_t i = 0; i < suffix.n; i++) {
        char c = suffix.p[i];
        low[i] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    static const struct {
        char suffix[4];
        enum member_kind kind;
    } kinds[] = {
        {{'j', 'p', 'g', 0}, KIND_IMAGE},   {{'t', 'x', 't', 0}, KIND_TXT},
        {{'j', 's', 'o', 'n'}, KIND_JSON},  {{'p', 'n', 'g', 0}, KIND_IMAGE},
        {{'w', 'e', 'b', 'p'}, KIND_IMAGE}, {{'j', 'p', 'e', 'g'}, KIND_IMAGE},
    };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (memcmp(low, kinds[i].suffix, 4) == 0) {
            return kinds[i].kind;
        }
    }
    return KIND_OTHER;
}

/* Split at the first dot after the last slash into key and suffix; false when either is empty. */
static bool split_name(struct str name, struct str *ret_key, struct str *ret_suffix)
{
    const char *slash = memrchr(name.p, '/', name.n);
    const char *base = slash != NULL ? slash + 1 : name.p;
    const char *dot = memchr(base, '.', (size_t)(name.p + name.n - base));
    if (dot == NULL || dot == base || dot + 1 == name.p + name.n) {
        return false;
    }
    *ret_key = (struct str){name.p, (size_t)(dot - name.p)};
    *ret_suffix = (struct str){dot + 1, (size_t)(name.p + name.n - dot - 1)};
    return true;
}

static bool make_room(struct scan *s, struct err *err)
{
    if (s->out->lines.n >= SCAN_OUT_BYTES && !s->flush(s->ctx, err)) {
        return false;
    }
    return true;
}

/* The index needs no more pairs of this shard. */
static bool is_full(const struct scan *s)
{
    return s->rows_max > 0 && s->shard_whole_ >= s->rows_max;
}

static bool close_pair(struct scan *s, struct err *err)
{
    if (!s->open_) {
        return true;
    }
    s->open_ = false;
    if (!s->image_ && !s->txt_ && !s->json_) {
        return true;
    }
    enum pair_fault f = s->fault_;
    if (!s->image_) {
        f = PAIR_NO_IMAGE;
    } else if (!s->txt_ && s->config->need_txt) {
        f = PAIR_NO_TXT;
    } else if (!s->json_ && s->config->need_json) {
        f = PAIR_NO_JSON;
    } else if (f == PAIR_WHOLE && s->pair_.width == 0 &&
               (s->config->fields & (LINE_WIDTH | LINE_HEIGHT)) != 0) {
        f = PAIR_NO_SIZE;
    }
    s->counts.pairs[f]++;
    struct str key = {s->key_, s->key_n_};
    if (f != PAIR_WHOLE) {
        if (s->first_broken == PAIR_WHOLE) {
            s->first_broken = f;
            s->first_broken_at = s->first_at_;
        }
        tell(s, key, s->first_at_, pair_fault_text(f));
        return true;
    }
    s->pair_.key = key;
    s->pair_.caption = buf_str(&s->caption_);
    s->shard_whole_++;
    size_t before_n = s->out->lines.n;
    line_add(&s->out->lines, s->config->fields, buf_str(&s->path_), &s->pair_);
    if (s->config->sample && line_key_hash(key) <= s->config->sample_below) {
        buf_add(&s->out->sample, s->out->lines.p + before_n, s->out->lines.n - before_n);
        s->counts.sampled++;
    }
    return make_room(s, err);
}

static void open_pair(struct scan *s, struct str key, int64_t at)
{
    memcpy(s->key_, key.p, key.n);
    s->key_n_ = key.n;
    s->open_ = true;
    s->image_ = s->txt_ = s->json_ = false;
    s->fault_ = PAIR_WHOLE;
    s->first_at_ = at;
    s->pair_ = (struct line_pair){.size = 0};
    buf_reset(&s->caption_);
}

static void take_image(struct scan *s, const struct tarwalk_member *m, struct str suffix)
{
    if (s->image_) {
        note_fault(s, PAIR_TWICE);
        return;
    }
    s->image_ = true;
    memcpy(s->suffix_, suffix.p, suffix.n);
    s->pair_.suffix = (struct str){s->suffix_, suffix.n};
    s->pair_.offset = m->offset;
    s->pair_.size = m->size;
    if (m->size == 0) {
        note_fault(s, PAIR_EMPTY_IMAGE);
    }
}

/* Read the member's bytes. When it is too large, *ret_ok is false and the pair is broken. */
static bool read_member(struct scan *s, const struct tarwalk_member *m, int64_t max,
                        struct str *ret, bool *ret_ok, struct err *err)
{
    const char *p = "";
    *ret_ok = m->size <= max;
    if (!*ret_ok) {
        note_fault(s, PAIR_TOO_LARGE);
        return true;
    }
    if (m->size > 0 && !source_need(s->src, m->offset, (size_t)m->size, &p, err)) {
        return false;
    }
    *ret = (struct str){p, (size_t)m->size};
    return true;
}

static bool take_txt(struct scan *s, const struct tarwalk_member *m, struct err *err)
{
    struct str text = {"", 0};
    bool ok = false;
    if (s->txt_) {
        note_fault(s, PAIR_TWICE);
        return true;
    }
    s->txt_ = true;
    if ((s->config->fields & LINE_CAPTION) == 0) {
        return true;
    }
    if (!read_member(s, m, SCAN_TXT_BYTES_MAX, &text, &ok, err)) {
        return false;
    }
    if (ok) {
        line_escape(&s->caption_, text);
    }
    return true;
}

static bool take_json(struct scan *s, const struct tarwalk_member *m, struct err *err)
{
    struct str text = {"", 0};
    bool ok = false;
    if (s->json_) {
        note_fault(s, PAIR_TWICE);
        return true;
    }
    s->json_ = true;
    if ((s->config->fields & (LINE_WIDTH | LINE_HEIGHT)) == 0) {
        return true;
    }
    if (!read_member(s, m, SCAN_JSON_BYTES_MAX, &text, &ok, err)) {
        return false;
    }
    enum meta_result r = ok ? meta_size(text, &s->pair_.width, &s->pair_.height) : META_OK;
    if (r != META_OK) {
        note_fault(s, r == META_BAD ? PAIR_BAD_JSON : PAIR_NO_SIZE);
    }
    return true;
}

static bool take_member(struct scan *s, const struct tarwalk_member *m, struct err *err)
{
    struct str key;
    struct str suffix;
    bool named = split_name(m->name, &key, &suffix);
    bool next = named && (!s->open_ || key.n != s->key_n_ || memcmp(key.p, s->key_, key.n) != 0);
    if (next && !close_pair(s, err)) {
        return false;
    }
    if (next && is_full(s)) {
        return true; /* the member is of a pair that is not wanted */
    }
    s->counts.members++;
    if (!named) {
        s->counts.others++;
        return true;
    }
    if (next) {
        open_pair(s, key, m->offset);
    }
    switch (kind_of(suffix)) {
    case KIND_IMAGE:
        take_image(s, m, suffix);
        return true;
    case KIND_TXT:
        return take_txt(s, m, err);
    case KIND_JSON:
        return take_json(s, m, err);
    case KIND_OTHER:
        s->counts.others++;
        break;
    }
    return true;
}

bool scan_shard(struct scan *s, struct str path, struct err *err)
{
    struct tarwalk w;
    struct tarwalk_member m;
    struct err e = ERR_INIT;
    buf_reset(&s->path_);
    line_escape(&s->path_, path);
    err_clear(&s->fault);
    s->broken_n_ = 0;
    s->open_ = false;
    s->first_broken = PAIR_WHOLE;
    s->shard_whole_ = 0;
    tarwalk_init(&w, s->src);
    while (!is_full(s) && tarwalk_next(&w, &m, &e)) {
        if (!take_member(s, &m, err)) {
            return false;
        }
    }
    s->counts.others += w.others;
    if (!close_pair(s, err)) {
        return false;
    }
    if (e.code == ERR_NONE) {
        return true;
    }
    if (e.code != ERR_MALFORMED && e.code != ERR_LIMIT) {
        *err = e;
        return false;
    }
    s->fault = e;
    s->fault_at = w.at;
    s->counts.bad_tars++;
    s->broken_n_ = 0; /* always listed, even after many others */
    tell(s, (struct str){"", 0}, w.at, e.message);
    return true;
}
