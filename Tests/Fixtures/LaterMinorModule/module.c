/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * A module as a later minor might have it: every struct has fields that this host does not know, and kinds and bits that it
 * has never heard of; it can live with ABI 1.0. */
#include "fixture_later_minor.h"
#include "echo_module.h"

struct later_ops {
  mh_transport_ops known;
  mh_status (*levitate)(mh_inst *, uint32_t);
};

struct later_option {
  mh_option known;
  const char *unit;
};

struct later_info {
  mh_transport_info known;
  const char *motto;
  uint64_t more_caps;
};

static mh_status levitate(mh_inst *inst, uint32_t height) {
  (void)inst;
  (void)height;
  abort(); /* no host of today calls it */
}

static mh_status connect(mh_inst *inst, mh_link link, mh_str device, mh_str options) {
  inst->host->link_event(inst->host->ctx, link, 4711, 1);
  return echo_connect(inst, link, device, options);
}

static const struct later_ops ops = {
    .known = {.struct_size = sizeof(struct later_ops), ECHO_OPS, .connect = connect},
    .levitate = levitate,
};

static const struct later_option height = {
    .known = {.struct_size = sizeof(struct later_option),
              .type = MH_OPT_INT,
              .name = "height",
              .default_text = "3",
              .help = "How high."},
    .unit = "m",
};

static const mh_option *const options[] = {&height.known};

static const struct later_info info = {
    .known = {.struct_size = sizeof(struct later_info),
              .abi_major = MH_ABI_MAJOR,
              .abi_minor_built = 99,
              .abi_minor_needed = 0,
              .name = "later-minor",
              .version = "9.0.0",
              .vendor = "fixture vendor",
              .license = "Apache-2.0",
              .caps = 1ull << 62,
              .ops = &ops.known,
              .options = options,
              .option_count = 1},
    .motto = "higher",
    .more_caps = ~0ull,
};

const mh_transport_info *mh_transport_entry_v1(void) { return &info.known; }
