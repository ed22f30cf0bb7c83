/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * rest_script.h - a catalog server that follows a script: what must be asked next, and what is
 * answered.
 *
 * A request that differs from the script is answered 599 with what differed, so that the client's
 * error tells it, and the script counts as broken.
 */
#include "catalog/catalog.h"

typedef struct TestStep {
    const char *asks;   /* "GET /v1/config": method and target from their beginning */
    const char *header; /* a line that the request has ("X-A: b"); "-X-A" = has no such header */
    const char *body;   /* is part of the request's body */
    int status;         /* 0 = the connection is closed without an answer; -1 = half of an answer */
    const char *extra;  /* further header lines, each with CRLF */
    const char *text;   /* the answer's body */
} TestStep;

#define TEST_CONFIG                                                                                \
    {                                                                                              \
        .asks = "GET /v1/config", .status = 200, .text = "{\"defaults\":{},\"overrides\":{}}"      \
    }

typedef struct TestScript TestScript;

/** steps must live as long as the script. */
TestScript *test_script_start(const TestStep *steps, size_t n);
/** Fails the test when a step was not asked for, or something else was. Returns NULL. */
TestScript *test_script_end(TestScript *script);
/** "http://127.0.0.1:PORT" */
const char *test_script_uri(const TestScript *script);
/** {"metadata-location": …, "metadata": …} of a new table whose property "which" is this; free().
 */
char *test_script_table(const char *which);
