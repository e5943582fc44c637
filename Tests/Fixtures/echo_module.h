/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * The functions of a module that gives back each frame. It uses nothing that ABI 1.0 does not have; whoever includes it
 * has included a header of the ABI before. */
#ifndef ECHO_MODULE_H
#define ECHO_MODULE_H

#include <stdlib.h>
#include <string.h>

struct mh_inst_s {
  const mh_host_api *host;
  mh_link link;
  int open;
};

static mh_str echo_text(const char *text) {
  mh_str result = {text, strlen(text)};
  return result;
}

static mh_status echo_create(const mh_host_api *host, mh_str config, mh_inst **out) {
  (void)config;
  /* The whole of 1.0 has to be there, whatever more the host has. */
  if (!MH_HAS(mh_host_api, host, link_event)) return MH_EINVAL;
  mh_inst *inst = calloc(1, sizeof *inst);
  if (!inst) return MH_ENOMEM;
  inst->host = host;
  *out = inst;
  return MH_OK;
}

static mh_status echo_start(mh_inst *inst) {
  (void)inst;
  return MH_OK;
}

static mh_status echo_connect(mh_inst *inst, mh_link link, mh_str device, mh_str options) {
  (void)device;
  (void)options;
  if (inst->open) return MH_ENOMEM;
  inst->link = link;
  inst->open = 1;
  inst->host->link_up(inst->host->ctx, link, 200, echo_text("echo"));
  return MH_OK;
}

static mh_status echo_send(mh_inst *inst, mh_link link, mh_bytes frame, uint64_t cookie) {
  if (!inst->open || link != inst->link) return MH_ECLOSED;
  inst->host->rx_frame(inst->host->ctx, link, frame, 0);
  inst->host->tx_done(inst->host->ctx, cookie, MH_OK);
  return MH_OK;
}

static mh_status echo_disconnect(mh_inst *inst, mh_link link) {
  if (!inst->open || link != inst->link) return MH_ECLOSED;
  inst->open = 0;
  inst->host->link_down(inst->host->ctx, link, MH_ECANCELED, echo_text(""));
  return MH_OK;
}

static mh_status echo_stop(mh_inst *inst) {
  if (inst->open) echo_disconnect(inst, inst->link);
  inst->host->stopped(inst->host->ctx);
  return MH_OK;
}

static void echo_destroy(mh_inst *inst) { free(inst); }

/* All but connect. */
#define ECHO_OPS                                                                                \
  .create = echo_create, .start = echo_start, .send = echo_send, .disconnect = echo_disconnect, \
  .stop = echo_stop, .destroy = echo_destroy

#endif
