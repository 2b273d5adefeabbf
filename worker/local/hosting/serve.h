/* The process above the model servers of one fleet, `drover-local serve FOLDER`: it fetches the
 * model, starts the servers, asks each for /ping, starts one again that ended, and ends with them
 * when asked. Reports by marks: `ready` once all answer, with "127.A.B. PORT" as text (host k is at
 * 127.A.B.k), `end` when the model cannot be had, with the FailureReason. */
#pragma once

/* The exit status of the process. */
int serve_main(const char *folder);
