/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * A module of an ABI that does not exist yet. */
#include "fixture_other_major.h"

const void *mh_transport_entry_v2(void) { return 0; }
