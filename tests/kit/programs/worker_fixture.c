/* Runs SQL statements from stdin, one per line, in DuckDB and prints the rows of each as JSON
 * lines, then a line of the byte 0x1e: makes the parquet fixtures of the worker's tests and reads
 * its sidecars back. Ends with the first statement that fails. */
#include <duckdb.h>
#include <stdio.h>
#include <stdlib.h>

static int run(duckdb_connection con, const char *sql)
{
    duckdb_result r;
    if (duckdb_query(con, sql, &r) != DuckDBSuccess) {
        (void)fprintf(stderr, "%s\n  in: %.200s\n", duckdb_result_error(&r), sql);
        duckdb_destroy_result(&r);
        return 1;
    }
    idx_t rows = duckdb_row_count(&r);
    idx_t columns = duckdb_column_count(&r);
    for (idx_t i = 0; i < rows; i++) {
        for (idx_t c = 0; c < columns; c++) {
            char *v = duckdb_value_varchar(&r, c, i);
            (void)printf("%s%s", c > 0 ? "\t" : "", v != NULL ? v : "null");
            duckdb_free(v);
        }
        (void)printf("\n");
    }
    duckdb_destroy_result(&r);
    (void)printf("\x1e\n");
    return fflush(stdout) == 0 ? 0 : 1;
}

int main(void)
{
    duckdb_database db;
    duckdb_connection con;
    if (duckdb_open(NULL, &db) != DuckDBSuccess || duckdb_connect(db, &con) != DuckDBSuccess) {
        return 1;
    }
    char *line = NULL;
    size_t cap = 0;
    /* Tests write a file of the same name again. */
    int rc = duckdb_query(con, "SET enable_external_file_cache = false", NULL) != DuckDBSuccess;
    while (rc == 0 && getline(&line, &cap, stdin) > 1) {
        rc = run(con, line);
    }
    free(line);
    duckdb_disconnect(&con);
    duckdb_close(&db);
    return rc;
}
