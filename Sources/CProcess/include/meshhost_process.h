/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * What Swift cannot call: it takes a variable number of arguments, or is declared for GNU only. */
#ifndef MESHHOST_PROCESS_H
#define MESHHOST_PROCESS_H

#ifdef __cplusplus
extern "C" {
#endif

/* No program that this process starts gets more rights than it has (PR_SET_NO_NEW_PRIVS). 0, or an errno. */
int meshhost_give_up_privileges(void);

/* This process gets SIGKILL when the thread that started it ends (PR_SET_PDEATHSIG), whatever it does then. 0, or an
 * errno. A parent that has ended before is not noticed: compare getppid() afterwards. */
int meshhost_die_with_parent(void);

/* Closes all descriptors from this one on. 0, or an errno. */
int meshhost_close_from(unsigned int first);

/* A pipe whose ends are closed when a program is started: what is written to ends[1] is read from ends[0]. 0, or an
 * errno. */
int meshhost_pipe(int ends[2]);

/* The version of the C library that runs, such as "2.36"; NULL where it is not that of GNU. */
const char *meshhost_glibc_version(void);

#ifdef __cplusplus
}
#endif

#endif
