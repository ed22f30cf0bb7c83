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

/* What the tests of the REST catalog share. */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NO_SUCH_TABLE                                                                              \
    "{\"error\":{\"message\":\"Table does not exist: s.t\",\"type\":\"NoSuchTableException\","     \
    "\"code\":404}}"
#define NO_SUCH_NAMESPACE                                                                          \
    "{\"error\":{\"message\":\"Namespace does not exist: s\",\"type\":"                            \
    "\"NoSuchNamespaceException\",\"code\":404}}"

extern const KnTableIdent rest_ident; /* s.t */

/** For cmocka's set-up of a group: no secrets in the environment. */
int rest_clean_environment(void **state);
/** These fail the test when it does not work. */
KnCatalog *rest_open_ok(const TestScript *script);
KnTable *rest_load_ok(KnCatalog *cat);
void rest_assert_said(const KnErr *err, const char *part);
/** The property that tells tables of test_script_table() apart. */
const char *rest_which(const KnTable *tbl);
