/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * front.h - what a running service answers over HTTP: /health, /ready, /metrics, /status.
 *
 *   /health    200 while the process works
 *   /ready     200 once every delivery's table was found and its destination's probe has passed,
 *              else 503; JSON lists those that are not
 *   /metrics   Prometheus text
 *   /status    JSON: every delivery's cursor, lag and functional status
 */
#include "net/listen.h"
#include "service/service.h"

typedef struct KnServiceFront KnServiceFront;

/** Takes over the socket, also on failure. The service must outlive it. */
KN_NODISCARD KnCode kn_service_front_open(KnListen *listening, KnService *svc, KnServiceFront **ret,
                                          KnErr *err);
KnServiceFront *kn_service_front_close(KnServiceFront *front); /* accepts NULL, returns NULL */

/* The bodies; thread-safe. */
void kn_service_metrics_write(KnService *svc, KnBuf *out);
void kn_service_status_json(KnService *svc, KnBuf *out);
