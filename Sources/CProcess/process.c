/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices */
#define _GNU_SOURCE
#include "meshhost_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

int meshhost_give_up_privileges(void) { return prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0 ? 0 : errno; }

int meshhost_die_with_parent(void) { return prctl(PR_SET_PDEATHSIG, (long)SIGKILL, 0L, 0L, 0L) == 0 ? 0 : errno; }

int meshhost_close_from(unsigned int first) { return syscall(SYS_close_range, first, ~0u, 0u) == 0 ? 0 : errno; }

int meshhost_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno; }

const char *meshhost_glibc_version(void) {
#ifdef __GLIBC__
    return gnu_get_libc_version();
#else
    return NULL;
#endif
}
