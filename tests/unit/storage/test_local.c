/* SPDX-License-Identifier: Apache-2.0 */
/* test_local.c - the contract on disk, durability points, messages, odd trees. labels: threads */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/path.h"
#include "storage/local/local_internal.h"
#include "support/tempdir.h"
#include "unit/storage/file_io_cases.h"

typedef struct Fixture {
    KnFileIO *io;
    KnArena *arena;
    char dir[256];
} Fixture;

static Fixture fx;

static int setup(void **state)
{
    (void)state;
    (void)test_tempdir_make(fx.dir);
    fx.arena = kn_arena_new(0);
    return kn_io_local_open(&fx.io, NULL) == KN_OK && kn_fault_set(NULL, NULL, NULL) == KN_OK ? 0
                                                                                              : -1;
}

static int teardown(void **state)
{
    (void)state;
    if (kn_fault_set(NULL, NULL, NULL) != KN_OK)
        return -1;
    fx.io = kn_io_close(fx.io);
    fx.arena = kn_arena_free(fx.arena);
    test_tempdir_remove(fx.dir);
    return 0;
}

static KnStr here(const char *name)
{
    return at(fx.arena, fx.dir, name);
}

static void it_keeps_the_contract(void **state)
{
    (void)state;
    check_file_io_contract(fx.io, here("plain").ptr);
    check_file_io_contract(fx.io, kn_arena_printf(fx.arena, "file://%s/with scheme", fx.dir));
}

static void one_of_eight_creators_wins_and_nothing_is_left(void **state)
{
    (void)state;
    check_file_io_create_race(fx.io, fx.dir);
    assert_int_equal(test_dir_count(fx.dir), 20);
    for (int i = 0; i < 20; ++i)
        assert_int_equal(test_dir_count(kn_arena_printf(fx.arena, "%s/race-%d", fx.dir, i)), 1);
}

static void the_engine_gets_the_absolute_path_unescaped(void **state)
{
    (void)state;
    const char *path = NULL;
    assert_int_equal(
        kn_io_engine_path(fx.io, fx.arena, kn_str("file:///a//b/k=*[1]?%2F"), &path, NULL), KN_OK);
    assert_string_equal(path, "/a/b/k=*[1]?%2F");
    assert_int_equal(kn_io_engine_path(fx.io, fx.arena, kn_str("a"), &path, NULL), KN_E_INVAL);
}

static void a_folder_is_not_an_object(void **state)
{
    (void)state;
    KnErr err = {0};
    KnFileInfo info;
    char byte;
    assert_int_equal(mkdir(here("d").ptr, 0777), 0);
    assert_int_equal(kn_io_stat(fx.io, here("d"), &info, &err), KN_E_NOTFOUND);
    assert_non_null(strstr(err.msg, "it is a folder, not a file"));
    assert_int_equal(kn_io_read(fx.io, here("d"), 0, 1, &byte, &err), KN_E_INVAL);
    assert_int_equal(put(fx.io, here("d"), "x", KN_IO_REPLACE), KN_E_INVAL);
    assert_int_equal(put(fx.io, here("d"), "x", KN_IO_CREATE), KN_E_EXISTS);
    assert_int_equal(put(fx.io, kn_str("/"), "x", KN_IO_CREATE), KN_E_INVAL);
    assert_int_equal(kn_io_remove(fx.io, here("d"), &err), KN_E_INVAL);
    assert_int_equal(test_dir_count(fx.dir), 1); /* no temporary file stays */
}

static void a_file_in_the_way_of_a_folder_is_named(void **state)
{
    (void)state;
    KnErr err = {0};
    assert_int_equal(put(fx.io, here("f"), "x", KN_IO_CREATE), KN_OK);
    assert_int_equal(kn_io_write(fx.io, here("f/g"), "x", 1, KN_IO_CREATE, &err), KN_E_INVAL);
    assert_non_null(strstr(err.msg, "a file of that name is in the way"));
    assert_int_equal(kn_io_write(fx.io, here("f/g/h"), "x", 1, KN_IO_CREATE, &err), KN_E_NOTFOUND);
    assert_non_null(strstr(err.msg, "is a file, not a folder"));
    assert_int_equal(kn_io_prepare_dir(fx.io, here("f"), &err), KN_E_INVAL);
    KnFileInfo info;
    assert_int_equal(kn_io_stat(fx.io, here("f/g"), &info, &err), KN_E_NOTFOUND);
    assert_int_equal(kn_io_remove(fx.io, here("f/g"), &err), KN_OK);
}

static void a_full_disk_fails_the_write_and_leaves_nothing(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) { /* the limit on file size stands in for the full disk */
        static char bytes[100000];
        struct rlimit limit = {50000, 50000};
        (void)signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(1);
        KnErr err = {0};
        KnCode rc = kn_io_write(fx.io, here("big"), bytes, sizeof(bytes), KN_IO_CREATE, &err);
        bool good = rc == KN_E_IO && err.sys_errno == EFBIG && strstr(err.msg, "/big': File too");
        _exit(good && test_dir_count(fx.dir) == 0 ? 0 : 2);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void messages_say_what_to_do(void **state)
{
    (void)state;
    static const struct {
        int sys_errno;
        KnCode code;
        bool retriable;
        const char *part;
    } cases[] = {
        {ENOENT, KN_E_NOTFOUND, false, "it does not exist"},
        {ENOSPC, KN_E_IO, true, "free space on that disk"},
        {EDQUOT, KN_E_IO, true, "have the quota raised"},
        {EROFS, KN_E_IO, false, "mount it writable"},
        {EACCES, KN_E_IO, false, "make it readable or writable"},
        {EMFILE, KN_E_IO, true, "ulimit -n"},
        {EIO, KN_E_IO, true, "Input/output error"},
        {ENAMETOOLONG, KN_E_INVAL, false, "File name too long"},
        {EEXIST, KN_E_EXISTS, false, "it exists already"},
        {EISDIR, KN_E_INVAL, false, "it is a folder"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        KnErr err = {0};
        assert_int_equal(kn_local_error(&err, cases[i].sys_errno, "write", "/p/q"), cases[i].code);
        assert_int_equal(err.retriable, cases[i].retriable);
        assert_non_null(strstr(err.msg, "cannot write '/p/q': "));
        assert_non_null(strstr(err.msg, cases[i].part));
        assert_int_equal(err.sys_errno, cases[i].code == KN_E_IO ? cases[i].sys_errno : 0);
    }
}

static int try_without_permission(void)
{
    if (geteuid() == 0 && setuid(65534) != 0)
        return 1;
    KnErr err = {0};
    if (kn_io_write(fx.io, here("ro/x"), "x", 1, KN_IO_CREATE, &err) != KN_E_IO || err.retriable ||
        err.sys_errno != EACCES)
        return 2;
    if (kn_io_prepare_dir(fx.io, here("ro"), &err) != KN_E_IO ||
        !strstr(err.msg, "cannot write into folder") || !strstr(err.msg, "give this user"))
        return 3;
    return kn_io_prepare_dir(fx.io, here("ro/sub"), &err) == KN_E_IO ? 0 : 4;
}

static void a_folder_without_permission_is_refused(void **state)
{
    (void)state;
    assert_int_equal(chmod(fx.dir, 0755), 0);
    assert_int_equal(mkdir(here("ro").ptr, 0555), 0);
    pid_t pid = fork();
    if (pid == 0) /* root may do everything, so the child becomes somebody else */
        _exit(try_without_permission());
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_name_that_is_too_long_is_refused(void **state)
{
    (void)state;
    char name[300];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(put(fx.io, here(name), "x", KN_IO_CREATE), KN_E_INVAL);
    assert_int_equal(test_dir_count(fx.dir), 0);
}

static void a_fault_before_publishing_leaves_the_old_object(void **state)
{
    (void)state;
    assert_int_equal(put(fx.io, here("x"), "old", KN_IO_CREATE), KN_OK);
    static const char *const rules[] = {"io-write-before:1:fail", "io-write-after-temp:1:fail"};
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(kn_fault_set(rules[i], NULL, NULL), KN_OK);
        assert_int_equal(put(fx.io, here("x"), "new", KN_IO_REPLACE), KN_E_IO);
        assert_string_equal(get(fx.arena, fx.io, here("x")), "old");
        assert_int_equal(test_dir_count(fx.dir), 1);
    }
    assert_int_equal(kn_fault_set("io-write-after:1:fail", NULL, NULL), KN_OK);
    KnErr err = {0};
    assert_int_equal(kn_io_write(fx.io, here("x"), "new", 3, KN_IO_REPLACE, &err), KN_E_UNKNOWN);
    assert_non_null(strstr(err.msg, "is written, but may not survive power loss"));
    assert_string_equal(get(fx.arena, fx.io, here("x")), "new");
}

static void a_fault_leaves_no_object_of_a_name_of_ones_own(void **state)
{
    (void)state;
    static const char *const rules[] = {"io-write-before:1:fail", "io-write-after-temp:1:fail"};
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(kn_fault_set(rules[i], NULL, NULL), KN_OK);
        assert_int_equal(put(fx.io, here("x"), "new", KN_IO_CREATE_OWN), KN_E_IO);
        assert_int_equal(test_dir_count(fx.dir), 0);
    }
    assert_int_equal(kn_fault_set("io-write-after:1:fail", NULL, NULL), KN_OK);
    assert_int_equal(put(fx.io, here("x"), "new", KN_IO_CREATE_OWN), KN_E_UNKNOWN);
    assert_string_equal(get(fx.arena, fx.io, here("x")), "new");
}

/* The writer of a name is killed at the point. */
static void kill_at(const char *rule, const char *name, KnWriteMode mode)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (kn_fault_set(rule, NULL, NULL) == KN_OK)
            (void)put(fx.io, here(name), "new", mode);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* What the name holds after. */
static const char *after_kill(const char *rule)
{
    kill_at(rule, "x", KN_IO_REPLACE);
    return get(fx.arena, fx.io, here("x"));
}

static void a_killed_writer_of_a_name_of_its_own_leaves_nothing_or_all(void **state)
{
    (void)state;
    kill_at("io-write-after-temp:1:kill", "own", KN_IO_CREATE_OWN);
    KnFileInfo info;
    assert_int_equal(kn_io_stat(fx.io, here("own"), &info, NULL), KN_E_NOTFOUND);
    kill_at("io-write-after:1:kill", "own", KN_IO_CREATE_OWN);
    assert_string_equal(get(fx.arena, fx.io, here("own")), "new");
}

static void a_killed_writer_leaves_the_old_or_the_new_object(void **state)
{
    (void)state;
    assert_int_equal(put(fx.io, here("x"), "old", KN_IO_CREATE), KN_OK);
    assert_string_equal(after_kill("io-write-before:1:kill"), "old");
    assert_string_equal(after_kill("io-write-after-temp:1:kill"), "old");
    assert_int_equal(test_dir_count(fx.dir), 2); /* its temporary file, hidden by its name */
    assert_string_equal(after_kill("io-write-after:1:kill"), "new");
}

enum { WRITERS = 4, NAMES = 10 };

static void *write_names(void *arg)
{
    const char *writer = arg;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    for (int i = 0; i < NAMES; ++i) {
        const char *path = kn_arena_printf(arena, "%s/%s-%d", fx.dir, writer, i);
        if (put(fx.io, kn_str(path), writer, KN_IO_CREATE_OWN) != KN_OK)
            return NULL;
    }
    return arg;
}

/* One at a time has the helper that syncs folders. */
static void writers_of_names_of_their_own_do_not_disturb_one_another(void **state)
{
    (void)state;
    static char writers[WRITERS][2] = {"a", "b", "c", "d"};
    pthread_t threads[WRITERS];
    for (int i = 0; i < WRITERS; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, write_names, writers[i]), 0);
    for (int i = 0; i < WRITERS; ++i) {
        void *wrote = NULL;
        assert_int_equal(pthread_join(threads[i], &wrote), 0);
        assert_ptr_equal(wrote, writers[i]);
    }
    assert_int_equal(test_dir_count(fx.dir), WRITERS * NAMES);
    assert_string_equal(get(fx.arena, fx.io, here("c-9")), "c");
}

static void a_child_of_fork_writes_names_of_its_own(void **state)
{
    (void)state;
    assert_int_equal(put(fx.io, here("parent"), "1", KN_IO_CREATE_OWN), KN_OK);
    pid_t pid = fork();
    if (pid == 0)
        _exit(put(fx.io, here("child"), "2", KN_IO_CREATE_OWN) == KN_OK ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_string_equal(get(fx.arena, fx.io, here("child")), "2");
}

static void listings_stay_in_the_tree(void **state)
{
    (void)state;
    assert_int_equal(put(fx.io, here("t/a/x"), "12345", KN_IO_CREATE), KN_OK);
    assert_int_equal(put(fx.io, here("outside/y"), "1", KN_IO_CREATE), KN_OK);
    assert_int_equal(mkdir(here("t/empty").ptr, 0777), 0);
    assert_int_equal(symlink("../outside", here("t/link-dir").ptr), 0);
    assert_int_equal(symlink("..", here("t/a/loop").ptr), 0);
    assert_int_equal(symlink("../outside/y", here("t/link-file").ptr), 0);
    assert_int_equal(symlink("nowhere", here("t/dangling").ptr), 0);
    assert_int_equal(mkfifo(here("t/fifo").ptr, 0666), 0);
    assert_string_equal(listed(fx.arena, fx.io, here("t").ptr), "a/x link-file ");
    const char *spelled = kn_arena_printf(fx.arena, "file:%s/./t", fx.dir);
    assert_string_equal(listed(fx.arena, fx.io, spelled), "a/x link-file ");
    assert_string_equal(listed(fx.arena, fx.io, here("t/a/x").ptr), "");
}

static void a_listing_has_a_depth_limit(void **state)
{
    (void)state;
    KN_BUF_AUTO path;
    kn_buf_init(&path, 4000);
    kn_buf_text(&path, fx.dir);
    for (int i = 0; i < 102; ++i)
        kn_buf_text(&path, "/d");
    assert_int_equal(kn_io_prepare_dir(fx.io, kn_str(path.data), NULL), KN_OK);
    KnErr err = {0};
    KnLocalWalk walk = {.prefix = kn_str(fx.dir)};
    assert_int_equal(kn_local_walk(&walk, fx.dir, &err), KN_E_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "more than 100 folders deep"));
}

static void sync_takes_files_and_folders(void **state)
{
    (void)state;
    KnErr err = {0};
    assert_int_equal(put(fx.io, here("s/a/x"), "1", KN_IO_CREATE), KN_OK);
    assert_int_equal(kn_io_sync(fx.io, here("s/a/x"), &err), KN_OK);
    assert_int_equal(kn_io_sync(fx.io, here("s"), &err), KN_OK);
    assert_int_equal(kn_io_sync(fx.io, here("none"), &err), KN_E_NOTFOUND);
}

static void new_objects_follow_the_umask(void **state)
{
    (void)state;
    mode_t old = umask(027);
    assert_int_equal(put(fx.io, here("u/x"), "1", KN_IO_CREATE), KN_OK);
    (void)umask(old);
    struct stat st;
    assert_int_equal(stat(here("u/x").ptr, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(stat(here("u").ptr, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0750);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(it_keeps_the_contract),
        CASE(one_of_eight_creators_wins_and_nothing_is_left),
        CASE(the_engine_gets_the_absolute_path_unescaped),
        CASE(a_folder_is_not_an_object),
        CASE(a_file_in_the_way_of_a_folder_is_named),
        CASE(a_full_disk_fails_the_write_and_leaves_nothing),
        CASE(messages_say_what_to_do),
        CASE(a_folder_without_permission_is_refused),
        CASE(a_name_that_is_too_long_is_refused),
        CASE(a_fault_before_publishing_leaves_the_old_object),
        CASE(a_fault_leaves_no_object_of_a_name_of_ones_own),
        CASE(a_killed_writer_leaves_the_old_or_the_new_object),
        CASE(a_killed_writer_of_a_name_of_its_own_leaves_nothing_or_all),
        CASE(writers_of_names_of_their_own_do_not_disturb_one_another),
        CASE(a_child_of_fork_writes_names_of_its_own),
        CASE(listings_stay_in_the_tree),
        CASE(a_listing_has_a_depth_limit),
        CASE(sync_takes_files_and_folders),
        CASE(new_objects_follow_the_umask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
