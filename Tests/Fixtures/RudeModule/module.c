/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * A module in C without MH_CAP_MULTILINK whose option "mode" picks what it does, most of it forbidden:
 *   echo          gives back each frame, tx_done from inside send
 *   thread        10,000 numbered frames from its own thread, waiting for rx_ready when told to
 *   deaf          10,000 numbered frames at once, not minding MH_AGAIN
 *   double        tx_done twice for each frame
 *   mute          never answers disconnect
 *   undying       never answers stop
 *   late          keeps its callbacks beyond destroy: fixture_call_late() uses them
 *   choosy        answers every second send with MH_AGAIN and later with writable
 *   slow          takes 60 ms to connect
 *   refuse        connect returns MH_EHOST
 *   fatal         what a frame begins with: S dies of SIGSEGV, H hangs for ever, X ends the process with status 3,
 *                 G writes garbage on descriptor 3, E writes two lines to standard error, W writes some hundred and
 *                 then why it ends with status 3; the others come back
 *   flood         frames from its own thread without end, not minding MH_AGAIN
 *   deadly        validate ends the process
 *   detail        link_down instead of link_up, with MH_ECONTENDED and a text
 *   off           connect tells that the adapter is off, and disconnect why
 */
#define _GNU_SOURCE
#include "meshhost_transport.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES = 10000 };

struct mh_inst_s {
  const mh_host_api *host;
  char mode[16];
  mh_link link;
  int open;
  int refused; /* choosy: the last send was refused */
  pthread_t thread;
  int has_thread;
  pthread_mutex_t lock;
  pthread_cond_t ready;
  int may_go_on;
  int quit;
};

static mh_host_api late_host;
static mh_link late_link;

static mh_str str(const char *text) {
  mh_str result = {text, strlen(text)};
  return result;
}

static void copy_mode(char *mode, size_t size, mh_str json) {
  static const char key[] = "\"mode\":\"";
  mode[0] = 0;
  for (size_t i = 0; i + sizeof key - 1 < json.len; i++) {
    if (memcmp(json.ptr + i, key, sizeof key - 1) != 0) continue;
    size_t n = 0;
    for (size_t j = i + sizeof key - 1; j < json.len && json.ptr[j] != '"' && n + 1 < size; j++) mode[n++] = json.ptr[j];
    mode[n] = 0;
    return;
  }
}

static int is(const mh_inst *inst, const char *mode) { return strcmp(inst->mode, mode) == 0; }

static mh_status validate(mh_str options, mh_sink errors, void *ctx) {
  char mode[16];
  copy_mode(mode, sizeof mode, options);
  if (strcmp(mode, "deadly") == 0) _exit(3);
  if (strcmp(mode, "impossible") != 0) return MH_OK;
  static const char problem[] = "{\"ptr\":\"/mode\",\"msg\":\"\\\"impossible\\\" cannot be done\",\"hint\":\"try echo\"}";
  mh_bytes chunk = {(const uint8_t *)problem, sizeof problem - 1};
  errors(ctx, chunk);
  return MH_EINVAL;
}

static mh_status create(const mh_host_api *host, mh_str config, mh_inst **out) {
  if (!MH_HAS(mh_host_api, host, link_event)) return MH_EINVAL;
  mh_inst *inst = calloc(1, sizeof *inst);
  if (!inst) return MH_ENOMEM;
  inst->host = host;
  copy_mode(inst->mode, sizeof inst->mode, config);
  pthread_mutex_init(&inst->lock, NULL);
  pthread_cond_init(&inst->ready, NULL);
  *out = inst;
  return MH_OK;
}

static mh_status start(mh_inst *inst) {
  inst->host->log(inst->host->ctx, MH_LOG_INFO, str("started\nwith a line break"));
  inst->host->metric(inst->host->ctx, str("starts"), MH_METRIC_COUNTER, 1);
  return MH_OK;
}

/* Offers one frame until it is taken. 0: the link has ended. */
static int offer(mh_inst *inst, mh_bytes frame) {
  for (;;) {
    mh_status status = inst->host->rx_frame(inst->host->ctx, inst->link, frame, 0);
    if (status == MH_OK) return 1;
    if (status != MH_AGAIN) return 0;
    pthread_mutex_lock(&inst->lock);
    while (!inst->may_go_on && !inst->quit) pthread_cond_wait(&inst->ready, &inst->lock);
    inst->may_go_on = 0;
    int quit = inst->quit;
    pthread_mutex_unlock(&inst->lock);
    if (quit) return 0;
  }
}

static void number(uint8_t frame[4], uint32_t n) {
  for (int i = 0; i < 4; i++) frame[i] = (uint8_t)(n >> (24 - 8 * i));
}

static void *run(void *context) {
  mh_inst *inst = context;
  uint8_t bytes[4];
  mh_bytes frame = {bytes, sizeof bytes};
  for (uint32_t n = 0; n < FRAMES; n++) {
    number(bytes, n);
    if (!is(inst, "flood")) {
      if (!offer(inst, frame)) break;
      continue;
    }
    pthread_mutex_lock(&inst->lock);
    int quit = inst->quit;
    pthread_mutex_unlock(&inst->lock);
    if (quit) break;
    inst->host->rx_frame(inst->host->ctx, inst->link, frame, 0);
    n = 0;
  }
  return NULL;
}

static void start_thread(mh_inst *inst) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  inst->has_thread = pthread_create(&inst->thread, NULL, run, inst) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void end_thread(mh_inst *inst) {
  if (!inst->has_thread) return;
  pthread_mutex_lock(&inst->lock);
  inst->quit = 1;
  pthread_cond_signal(&inst->ready);
  pthread_mutex_unlock(&inst->lock);
  pthread_join(inst->thread, NULL);
  inst->has_thread = 0;
}

static mh_status connect(mh_inst *inst, mh_link link, mh_str device, mh_str options) {
  const mh_host_api *host = inst->host;
  (void)device;
  (void)options;
  if (is(inst, "refuse")) return MH_EHOST;
  if (is(inst, "detail")) {
    host->link_down(host->ctx, link, MH_ECONTENDED, str("another host is using this radio; let it go"));
    return MH_OK;
  }
  if (is(inst, "slow")) {
    struct timespec pause = {0, 60 * 1000 * 1000};
    nanosleep(&pause, NULL);
  }
  inst->link = link;
  inst->open = 1;
  inst->quit = 0;
  if (is(inst, "off")) {
    host->link_event(host->ctx, link, MH_EVENT_ADAPTER, 0);
    return MH_OK;
  }
  host->link_event(host->ctx, link, MH_EVENT_PHASE, MH_PHASE_CONNECTING);
  host->link_event(host->ctx, link, 4711, 1); /* of a later minor */
  host->link_up(host->ctx, link, 200, str("rude:1"));
  if (is(inst, "thread") || is(inst, "flood")) start_thread(inst);
  if (is(inst, "deaf")) {
    uint8_t bytes[4];
    mh_bytes frame = {bytes, sizeof bytes};
    for (uint32_t n = 0; n < FRAMES; n++) {
      number(bytes, n);
      host->rx_frame(host->ctx, link, frame, 0);
    }
  }
  return MH_OK;
}

static void die_of(mh_bytes frame) {
  static const char garbage[] = "no message";
  static const char lines[] = "<4>a warning\nplain text\n";
  static const char words[] = "<6>one of the many lines that stand before the one that counts: the state of this and that\n";
  static const char why[] = "<3>the device file is gone";
  switch (frame.ptr[0]) {
    case 'S':
      signal(SIGSEGV, SIG_DFL); /* whoever else watches for it, such as a sanitizer */
      *(volatile int *)0 = 0;
      break;
    case 'H':
      for (;;) pause();
    case 'X':
      _exit(3);
    case 'G':
      if (write(3, garbage, sizeof garbage) < 0) _exit(4);
      break;
    case 'E':
      if (write(2, lines, sizeof lines - 1) < 0) _exit(4);
      break;
    case 'W':
      for (int i = 0; i < 600; i++) {
        if (write(2, words, sizeof words - 1) < 0) _exit(4);
      }
      if (write(2, why, sizeof why - 1) < 0) _exit(4);
      _exit(3);
    default:
      break;
  }
}

static mh_status send(mh_inst *inst, mh_link link, mh_bytes frame, uint64_t cookie) {
  const mh_host_api *host = inst->host;
  if (!inst->open || link != inst->link) return MH_ECLOSED;
  if (is(inst, "choosy") && !inst->refused) {
    inst->refused = 1;
    host->writable(host->ctx, link);
    return MH_AGAIN;
  }
  inst->refused = 0;
  if (is(inst, "fatal")) die_of(frame);
  if (is(inst, "mute") && frame.len == 1) return MH_OK; /* a frame that is never done */
  host->rx_frame(host->ctx, link, frame, 0);
  host->tx_done(host->ctx, cookie, MH_OK);
  if (is(inst, "double")) host->tx_done(host->ctx, cookie, MH_OK);
  return MH_OK;
}

static mh_status disconnect(mh_inst *inst, mh_link link) {
  if (is(inst, "mute")) return MH_OK;
  if (!inst->open || link != inst->link) return MH_ECLOSED;
  end_thread(inst);
  inst->open = 0;
  if (is(inst, "off")) {
    inst->host->link_down(inst->host->ctx, link, MH_EADAPTER, str("rude0 is off"));
  } else {
    inst->host->link_down(inst->host->ctx, link, MH_ECANCELED, str(""));
  }
  return MH_OK;
}

static mh_status diagnostics(mh_inst *inst, mh_sink sink, void *ctx) {
  static const char parts[2][16] = {"{\"mode\"", ":\"c\"}"};
  (void)inst;
  for (int i = 0; i < 2; i++) {
    mh_bytes chunk = {(const uint8_t *)parts[i], strlen(parts[i])};
    sink(ctx, chunk);
  }
  return MH_OK;
}

static mh_status stop(mh_inst *inst) {
  if (is(inst, "undying")) return MH_OK;
  if (inst->open) disconnect(inst, inst->link);
  if (is(inst, "late")) {
    late_host = *inst->host;
    late_link = inst->link;
  }
  inst->host->stopped(inst->host->ctx);
  return MH_OK;
}

static void destroy(mh_inst *inst) {
  end_thread(inst);
  pthread_cond_destroy(&inst->ready);
  pthread_mutex_destroy(&inst->lock);
  free(inst);
  /* The worst of modules: it goes on talking. */
  if (late_host.ctx) {
    uint8_t byte = 1;
    mh_bytes frame = {&byte, 1};
    late_host.rx_frame(late_host.ctx, late_link, frame, 0);
    late_host.link_down(late_host.ctx, late_link, MH_EIO, str("late"));
    late_host.tx_done(late_host.ctx, 1, MH_OK);
    late_host.stopped(late_host.ctx);
    late_host.found(late_host.ctx, str("a"), str("b"), MH_RSSI_UNKNOWN, frame);
    late_host.log(late_host.ctx, MH_LOG_DEBUG, str("late"));
  }
}

static mh_status rx_ready(mh_inst *inst, mh_link link) {
  (void)link;
  pthread_mutex_lock(&inst->lock);
  inst->may_go_on = 1;
  pthread_cond_signal(&inst->ready);
  pthread_mutex_unlock(&inst->lock);
  return MH_OK;
}

static const mh_transport_ops ops = {
    .struct_size = offsetof(mh_transport_ops, send_without_response), /* as an older minor would have it */
    .validate = validate,
    .create = create,
    .start = start,
    .connect = connect,
    .send = send,
    .disconnect = disconnect,
    .diagnostics = diagnostics,
    .stop = stop,
    .destroy = destroy,
    .rx_ready = rx_ready,
};

static const mh_option mode = {
    .struct_size = sizeof(mh_option),
    .type = MH_OPT_STRING,
    .name = "mode",
    .default_text = "echo",
    .help = "What to do.",
};

static const mh_option *const options[] = {&mode};

/* Tests patch copies of this file: they look for the sizes and versions in a row. */
static const mh_transport_info info = {
    .struct_size = sizeof(mh_transport_info),
    .abi_major = MH_ABI_MAJOR,
    .abi_minor_built = MH_ABI_MINOR,
    .abi_minor_needed = 0,
    .name = "rude",
    .version = "0.1.0",
    .vendor = "fixture vendor",
    .license = "Apache-2.0",
    .caps = MH_CAP_PIPELINED_READS,
    .ops = &ops,
    .options = options,
    .option_count = 1,
};

const mh_transport_info *mh_transport_entry_v1(void) { return &info; }
