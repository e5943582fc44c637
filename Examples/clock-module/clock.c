/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * A whole transport module in one file: a "device" that sends the time of day once per interval and takes whatever it is
 * sent. It shows the shape that every module has: an option, an instance per device, a thread that calls back, and an end
 * that leaves nothing behind.
 *
 *   cc -std=c11 -Wall -Wextra -O2 -fPIC -shared -fvisibility=hidden -I Sources/CTransportABI/include \
 *      -o meshhost-clock.so Examples/clock-module/clock.c -pthread
 *
 * The rules (O1, T3, ...) are those at the top of meshhost_transport.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "meshhost_transport.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Without MH_CAP_MULTILINK there is one instance per device, and so one link at a time. */
struct mh_inst_s {
  const mh_host_api *host; /* stays valid until destroy returns (O4) */
  long interval_ms;
  mh_link link;
  int is_up;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t quit_changed;
  int quit;
};

static mh_str str(const char *text) {
  mh_str result = {text, strlen(text)};
  return result;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const mh_option interval = {
    sizeof(mh_option), MH_OPT_DURATION, "interval", "1s", "How often the time is sent, 10ms to 1h.", 0, 0};
static const mh_option *const options[] = {&interval};

/* The host has checked the options against the table: what is here is a duration such as 250ms, or nothing. A module with
 * more than one option takes a JSON parser. Returns milliseconds. */
static long read_interval(mh_str json) {
  char text[256] = "";
  double number = 1;
  char unit[3] = "s";
  if (json.len < sizeof text) memcpy(text, json.ptr, json.len); /* not NUL-ended (O1) */
  const char *found = strstr(text, "\"interval\":\"");
  if (found && sscanf(found + strlen("\"interval\":\""), "%lf%2[a-z]", &number, unit) != 2) return 0;
  double scale = !strcmp(unit, "ms") ? 1 : !strcmp(unit, "s") ? 1e3 : !strcmp(unit, "m") ? 6e4 : !strcmp(unit, "h") ? 3.6e6 : 0;
  return (long)(number * scale);
}

static int is_allowed(long milliseconds) { return milliseconds >= 10 && milliseconds <= 3600 * 1000L; }

/* What the table cannot say. Also called by `meshhost check`: nothing of the outside world is touched. */
static mh_status validate(mh_str json, mh_sink errors, void *context) {
  static const char problem[] = "{\"ptr\":\"/interval\",\"msg\":\"is outside 10ms to 1h\",\"hint\":\"for example 1s\"}";
  if (is_allowed(read_interval(json))) return MH_OK;
  errors(context, (mh_bytes){(const uint8_t *)problem, sizeof problem - 1});
  return MH_EINVAL;
}

/* ---- life of an instance ----------------------------------------------------------------------------------------- */

static mh_status create(const mh_host_api *host, mh_str config, mh_inst **out) {
  mh_inst *inst = calloc(1, sizeof *inst);
  if (!inst) return MH_ENOMEM; /* a create that fails leaves nothing (O5) */
  inst->host = host;
  inst->interval_ms = read_interval(config);
  pthread_mutex_init(&inst->lock, NULL);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&inst->quit_changed, &attributes);
  pthread_condattr_destroy(&attributes);
  *out = inst;
  return MH_OK;
}

static mh_status start(mh_inst *inst) {
  (void)inst;
  return MH_OK;
}

static void destroy(mh_inst *inst) {
  pthread_cond_destroy(&inst->quit_changed);
  pthread_mutex_destroy(&inst->lock);
  free(inst);
}

/* ---- a link ------------------------------------------------------------------------------------------------------ */

/* Host callbacks may come from any thread (T3). */
static void *tick(void *context) {
  mh_inst *inst = context;
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  pthread_mutex_lock(&inst->lock);
  while (!inst->quit) {
    next.tv_nsec += inst->interval_ms % 1000 * 1000000L;
    next.tv_sec += inst->interval_ms / 1000 + next.tv_nsec / 1000000000L;
    next.tv_nsec %= 1000000000L;
    while (!inst->quit && pthread_cond_timedwait(&inst->quit_changed, &inst->lock, &next) == 0) {
    }
    if (inst->quit) break;
    pthread_mutex_unlock(&inst->lock);
    char text[32];
    int length = snprintf(text, sizeof text, "%lld", (long long)time(NULL));
    /* MH_AGAIN: the host's queue is full. An old time is worth nothing, so it is dropped; a module whose frames matter
     * keeps it and offers it again after rx_ready. */
    (void)inst->host->rx_frame(inst->host->ctx, inst->link, (mh_bytes){(const uint8_t *)text, (size_t)length}, 0);
    pthread_mutex_lock(&inst->lock);
  }
  pthread_mutex_unlock(&inst->lock);
  return NULL;
}

/* Returns at once (T2). MH_OK means that link_up or link_down follows; here it follows within. */
static mh_status connect_link(mh_inst *inst, mh_link link, mh_str device, mh_str json) {
  (void)device;
  if (inst->is_up) return MH_EFULL;
  inst->link = link;
  inst->interval_ms = read_interval(json);
  if (!is_allowed(inst->interval_ms)) return MH_ECONFIG;
  inst->quit = 0;
  inst->host->link_up(inst->host->ctx, link, MH_MAX_FRAME, str("clock"));
  /* A module's threads block all signals (T5). */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failure = pthread_create(&inst->thread, NULL, tick, inst);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failure) {
    inst->host->link_down(inst->host->ctx, link, MH_ENOMEM, str("no thread for the clock; too many processes?"));
    return MH_OK;
  }
  inst->is_up = 1;
  return MH_OK;
}

static mh_status disconnect_link(mh_inst *inst, mh_link link) {
  if (!inst->is_up || inst->link != link) return MH_ECLOSED;
  pthread_mutex_lock(&inst->lock);
  inst->quit = 1;
  pthread_cond_signal(&inst->quit_changed);
  pthread_mutex_unlock(&inst->lock);
  pthread_join(inst->thread, NULL); /* it waits for nothing but us */
  inst->is_up = 0;
  inst->host->link_down(inst->host->ctx, link, MH_ECANCELED, str("disconnected"));
  return MH_OK;
}

/* MH_OK: the bytes are ours now, and exactly one tx_done follows, in the order of the sends (it may come first). */
static mh_status send_frame(mh_inst *inst, mh_link link, mh_bytes frame, uint64_t cookie) {
  (void)frame;
  if (!inst->is_up || inst->link != link) return MH_ECLOSED;
  inst->host->tx_done(inst->host->ctx, cookie, MH_OK);
  return MH_OK;
}

/* Each open link gets its link_down; then stopped, after which only destroy comes (T4). */
static mh_status stop(mh_inst *inst) {
  if (inst->is_up) disconnect_link(inst, inst->link);
  inst->host->stopped(inst->host->ctx);
  return MH_OK;
}

/* ---- the description --------------------------------------------------------------------------------------------- */

static const mh_transport_ops ops = {
    .struct_size = sizeof(mh_transport_ops),
    .validate = validate,
    .create = create,
    .start = start,
    .connect = connect_link,
    .send = send_frame,
    .disconnect = disconnect_link,
    .stop = stop,
    .destroy = destroy,
};

static const mh_transport_info info = {
    .struct_size = sizeof(mh_transport_info),
    .abi_major = MH_ABI_MAJOR,
    .abi_minor_built = MH_ABI_MINOR,
    .abi_minor_needed = 0,
    .name = "clock",
    .version = "1.0.0",
    .vendor = "meshhost",
    .license = "Apache-2.0",
    .ops = &ops,
    .options = options,
    .option_count = 1,
};

const mh_transport_info *mh_transport_entry_v1(void) { return &info; }
