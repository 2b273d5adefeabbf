/* One row on its way through the stages, and its columns. */
#pragma once
#include "download/image/bbox.h"
#include "download/image/image.h"
#include "io/queue.h"
#include "job/stats.h"

#define COLUMNS_MAX            64
#define SAMPLE_ERROR_BYTES_MAX 256
#define URL_BYTES_MAX          16384
#define ROW_TEXT_BYTES_MAX     (16u << 20)

enum cell_kind {
    CELL_NULL,
    CELL_BOOL,
    CELL_INT,
    CELL_UINT,
    CELL_FLOAT,
    CELL_DOUBLE,
    CELL_TEXT,
    CELL_JSON /* text copied into json unchanged: lists, structs, maps, decimals */
};
struct cell { /* text borrowed from its sample */
    enum cell_kind kind;
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double d;
        struct str s;
    };
};
/* A column copied through to json and parquet. */
struct column {
    char *name; /* name in the output */
    /* type in the parquet sidecar: "INTEGER", "VARCHAR" ...; texts are cast to it, since dates and
     * lists travel as text */
    const char *sql_type;
    enum cell_kind kind;
};
struct columns {
    struct column at[COLUMNS_MAX]; /* additional columns, then caption (if any), then url */
    bool verify; /* rows have one more cell at [n]: the hash their body must have; not written */
    int n;
    int url_i;
    int caption_i;              /* -1: no caption */
    int boxes_i;                /* column of the boxes to blur; -1: none */
    char *types_[COLUMNS_MAX];  /* owned texts of types that are not plain */
    bool no_value[COLUMNS_MAX]; /* the input has no value of it: its type is not known */
};

/* State of a fetch while the row has no transfer. */
struct fetch_place {
    char *hop;             /* URL to continue with after redirects; NULL: the row's own. Owned */
    int redirects, tries;  /* redirects of this attempt; earlier attempts that count */
    int pauses;            /* attempts answered by a request for a pause */
    int64_t left_us;       /* until the deadline of this attempt; 0: not begun */
    int64_t not_before_us; /* monotonic */
    bool last;             /* fail then, unless the network was at fault */
};
struct sample {
    struct queue_item item; /* first member: queues pass items */
    struct fetch_place place;
    int64_t shard_i;
    int32_t row_i;      /* in the shard */
    int fetch_thread;   /* that fetched it */
    struct cell *cells; /* cells[columns.n] */
    char *text;         /* text of the cells */
    size_t text_n;
    uint8_t *body; /* as downloaded; freed after decoding */
    size_t body_n;
    enum sample_status status;
    char error[SAMPLE_ERROR_BYTES_MAX];                     /* "" on success */
    int32_t width, height, original_width, original_height; /* 0: null */
    char *exif;                                             /* JSON text or NULL */
    char hash[IMAGE_HASH_HEX_N];                            /* "": null */
    uint8_t *image;
    size_t image_n;
};

/* True for a list, struct or map, whose text is JSON as a whole. */
bool column_is_nested(const struct column *c);
/* With columns_n empty cells; the caller frees it. */
struct sample *sample_new(int columns_n);
void sample_free(struct sample *s);
/* Copy the texts of the first cells_n cells into the sample. ERR_LIMIT when they are larger than
 * ROW_TEXT_BYTES_MAX. */
bool sample_keep_text(struct sample *s, int cells_n, struct err *err) MUST_CHECK;
/* Free what only earlier stages need; keep what the sidecar needs. */
void sample_drop_image(struct sample *s);
/* Free the downloaded body. */
void sample_drop_body(struct sample *s);
/* Mark as failed. Control characters and invalid UTF-8 become '?', because the text goes into JSON
 * and Parquet. */
void sample_fail(struct sample *s, enum sample_status status, const char *fmt, ...) PRINTF(3, 4);
/* Parse the boxes in a cell: null gives no box; a cell that is not text is invalid. */
bool sample_boxes(const struct sample *s, int cell_i, struct bboxes *ret,
                  struct err *err) MUST_CHECK;
struct sample *sample_of(struct queue_item *item); /* NULL gives NULL */
