/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices */
#ifndef MESHHOST_CSQLITE_SHIM_H
#define MESHHOST_CSQLITE_SHIM_H
#include <sqlite3.h>

/* SQLite makes a copy of what is bound. The macro is a cast that Swift does not import. */
static inline sqlite3_destructor_type mh_sqlite_transient(void)
{
    return SQLITE_TRANSIENT;
}
#endif
