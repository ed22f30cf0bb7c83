/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * http_stub.h - an HTTP/1.1 server on a random port of 127.0.0.1 that plays an endpoint.
 *
 * A thread for each connection reads requests and calls the handler, which writes the raw answer
 * (or half of one, or none). Calls of the handler are one at a time, except while it waits in
 * test_stub_wait_gone().
 */
#include <stdbool.h>
#include <stddef.h>

typedef struct TestStub TestStub;

typedef struct TestRequest {
    int number; /* of this server, from 1 */
    int connection;
    const char *method;
    const char *target; /* path and query as sent */
    const char *head;   /* header lines */
    const char *body;   /* chunks put together; terminated */
    size_t body_len;
    int fd;
    TestStub *stub;
} TestRequest;

/** Returns whether the connection stays open. */
typedef bool (*TestStubFn)(void *arg, const TestRequest *req);

TestStub *test_stub_start(TestStubFn fn, void *arg);
/** Closes everything and joins; returns NULL. */
TestStub *test_stub_stop(TestStub *stub);
int test_stub_port(const TestStub *stub);
int test_stub_requests(TestStub *stub);
int test_stub_connections(TestStub *stub);
/** A value of the request's header, in out ("" = none). */
const char *test_stub_header(const TestRequest *req, const char *name, char *out, size_t cap);
void test_stub_send(const TestRequest *req, const void *bytes, size_t len);
void test_stub_printf(const TestRequest *req, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/** Status line, Content-Length, the extra header lines (each with CRLF; NULL = none), the text. */
void test_stub_answer(const TestRequest *req, int status, const char *extra, const char *text);
/** Waits until the client closes the connection or the server stops. */
void test_stub_wait_gone(const TestRequest *req);
/** A port on which nobody listens. */
int test_stub_dead_port(void);
