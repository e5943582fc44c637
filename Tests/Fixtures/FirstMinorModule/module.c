/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * A module as it was built with the header of ABI 1.0, which is kept here as it was: its structs are smaller than those of
 * today. */
#include "meshhost_transport_1_0.h"
#include "echo_module.h"

_Static_assert(MH_ABI_MINOR == 0, "the header of 1.0 is not to be touched");

static const mh_transport_ops ops = {.struct_size = sizeof(mh_transport_ops), ECHO_OPS, .connect = echo_connect};

static const mh_transport_info info = {
    .struct_size = sizeof(mh_transport_info),
    .abi_major = MH_ABI_MAJOR,
    .abi_minor_built = MH_ABI_MINOR,
    .abi_minor_needed = 0,
    .name = "first-minor",
    .version = "1.0.0",
    .vendor = "fixture vendor",
    .license = "Apache-2.0",
    .ops = &ops,
};

const mh_transport_info *mh_transport_entry_v1(void) { return &info; }
