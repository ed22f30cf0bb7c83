/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * notify.h - telling systemd how the service is doing (sd_notify's protocol, spoken here: one
 * datagram of NAME=VALUE lines to $NOTIFY_SOCKET). Without that variable nothing is sent. One
 * thread.
 */
#include <stdbool.h>
#include <stdint.h>

/** "READY=1", "RELOADING=1\nMONOTONIC_USEC=...", "STOPPING=1", "STATUS=..."; true = it was sent. */
bool kn_notify(const char *lines);
/** How often the watchdog wants to be told, in microseconds ($WATCHDOG_USEC, for this process);
 * 0 = no watchdog. */
int64_t kn_notify_watchdog(void);
