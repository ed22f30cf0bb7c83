/* SPDX-License-Identifier: Apache-2.0 */
/* notify.c - see notify.h. */
#include "service/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"

bool kn_notify(const char *lines)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path ? strlen(path) : 0;
    if (len < 2 || len >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
        return false;
    memcpy(to.sun_path, path, len);
    if (path[0] == '@') /* a name without a file */
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    ssize_t sent =
        sendto(fd, lines, strlen(lines), MSG_NOSIGNAL, (const struct sockaddr *)&to, size);
    (void)close(fd);
    return sent == (ssize_t)strlen(lines);
}

int64_t kn_notify_watchdog(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t micros = 0, wanted = 0;
    if (!usec || !kn_str_to_i64(kn_str(usec), &micros) || micros <= 0)
        return 0;
    if (pid && (!kn_str_to_i64(kn_str(pid), &wanted) || wanted != (int64_t)getpid()))
        return 0;
    return micros;
}
