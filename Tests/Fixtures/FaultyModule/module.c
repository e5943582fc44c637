/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * A module in C that gives back each frame and keeps every rule of the ABI, but for one fault: that which its option "fault"
 * names, or, of its description, the environment variable FAULTY_DESCRIPTION. Which rule each breaks is written in the
 * tests of MeshModuleTesting. */
#define _GNU_SOURCE
#include "meshhost_transport.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST = 200, ROOM = 64 };

struct frame {
  size_t length;
  uint8_t bytes[LONGEST];
};

struct mh_inst_s {
  const mh_host_api *host;
  char fault[32];
  char token[64];
  mh_link link;
  int is_open;
  int links; /* made so far */
  int sends; /* offered so far */
  uint64_t held; /* a send whose tx_done is kept back, or 0 */
  struct frame kept[ROOM]; /* frames that the host had no room for */
  int first, count;
};

/* What a module must not keep: for faults that talk after destroy. */
static mh_host_api late_host;

static mh_str str(const char *text) {
  mh_str result = {text, strlen(text)};
  return result;
}

/* The text of an option, which has no escapes in tests. */
static void copy_option(char *value, size_t size, mh_str json, const char *name) {
  char key[40];
  size_t length = (size_t)snprintf(key, sizeof key, "\"%s\":\"", name);
  value[0] = 0;
  for (size_t i = 0; i + length <= json.len; i++) {
    if (memcmp(json.ptr + i, key, length) != 0) continue;
    size_t n = 0;
    for (size_t j = i + length; j < json.len && json.ptr[j] != '"' && n + 1 < size; j++) value[n++] = json.ptr[j];
    value[n] = 0;
    return;
  }
}

static int has(const mh_inst *inst, const char *fault) { return strcmp(inst->fault, fault) == 0; }

static void pause_for(long milliseconds) {
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static void start_thread(void *(*run)(void *), void *context) {
  sigset_t all, before;
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, NULL, run, context) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void *sleep_for_ever(void *context) {
  for (;;) pause();
  return context;
}

static void *talk_late(void *context) {
  pause_for(20);
  late_host.log(late_host.ctx, MH_LOG_INFO, str("still here"));
  return context;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static mh_status validate(mh_str options, mh_sink errors, void *ctx) {
  static const char problem[] = "{\"ptr\":\"/fault\",\"msg\":\"this cannot be done\"}";
  char fault[32];
  copy_option(fault, sizeof fault, options, "fault");
  if (strcmp(fault, "lies about options") != 0) return MH_OK;
  mh_bytes chunk = {(const uint8_t *)problem, sizeof problem - 1};
  errors(ctx, chunk);
  return MH_OK; /* though there is a problem */
}

static mh_status identity(mh_str options, mh_sink sink, void *ctx) {
  static char calls;
  char text[40];
  char fault[32];
  copy_option(fault, sizeof fault, options, "fault");
  snprintf(text, sizeof text, "faulty %d", strcmp(fault, "is somebody else") == 0 ? calls++ : 0);
  mh_bytes chunk = {(const uint8_t *)text, strlen(text)};
  sink(ctx, chunk);
  return MH_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static mh_status create(const mh_host_api *host, mh_str config, mh_inst **out) {
  if (!MH_HAS(mh_host_api, host, link_event)) return MH_EINVAL;
  mh_inst *inst = calloc(1, sizeof *inst);
  if (!inst) return MH_ENOMEM;
  inst->host = host;
  copy_option(inst->fault, sizeof inst->fault, config, "fault");
  copy_option(inst->token, sizeof inst->token, config, "token");
  *out = inst;
  return MH_OK;
}

static void leak(const mh_inst *inst) {
  if (has(inst, "leaks memory")) {
    void *block = malloc(65536);
    if (block) memset(block, 1, 65536);
    *(void *volatile *)&block = block;
  }
  if (has(inst, "leaks descriptors") && dup(2) < 0) abort();
  if (has(inst, "leaks threads")) start_thread(sleep_for_ever, NULL);
  if (has(inst, "leaks a handle")) {
    int (*timer_init)(struct uv_loop_s *, void *) =
        (int (*)(struct uv_loop_s *, void *))dlsym(RTLD_DEFAULT, "uv_timer_init");
    void *timer = calloc(1, 1024);
    if (timer_init && timer) timer_init(inst->host->loop, timer);
  }
}

static mh_status start(mh_inst *inst) {
  const mh_host_api *host = inst->host;
  if (has(inst, "starts slowly")) pause_for(80);
  if (has(inst, "fails to start")) return MH_EINTERNAL;
  if (has(inst, "writes to stdout")) {
    printf("hello\n");
    fflush(stdout);
  }
  if (has(inst, "changes folder") && chdir("/tmp") != 0) abort();
  if (has(inst, "changes umask")) umask(0123);
  if (has(inst, "changes environment")) setenv("FAULTY", "yes", 1);
  if (has(inst, "handles signals")) signal(SIGUSR1, SIG_IGN);
  if (has(inst, "tells secrets")) {
    char text[128];
    snprintf(text, sizeof text, "the token is %s", inst->token);
    host->log(host->ctx, MH_LOG_INFO, str(text));
  }
  if (has(inst, "logs at no level")) host->log(host->ctx, 42, str("what"));
  if (has(inst, "counts badly")) host->metric(host->ctx, str("No Name"), MH_METRIC_COUNTER, 1);
  leak(inst);
  return MH_OK;
}

static void down(mh_inst *inst, mh_status why) {
  inst->is_open = 0;
  inst->count = 0;
  inst->host->link_down(inst->host->ctx, inst->link, why, str(""));
}

static mh_status stop(mh_inst *inst) {
  const mh_host_api *host = inst->host;
  if (has(inst, "never stops")) return MH_OK;
  if (has(inst, "stops before its links")) host->stopped(host->ctx);
  if (inst->is_open) down(inst, MH_ECANCELED);
  if (!has(inst, "stops before its links")) host->stopped(host->ctx);
  if (has(inst, "stops twice")) host->stopped(host->ctx);
  return MH_OK;
}

static void destroy(mh_inst *inst) {
  if (has(inst, "talks in destroy")) inst->host->log(inst->host->ctx, MH_LOG_INFO, str("farewell"));
  if (has(inst, "talks after destroy")) {
    late_host = *inst->host;
    start_thread(talk_late, NULL);
  }
  free(inst);
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static mh_status connect(mh_inst *inst, mh_link link, mh_str device, mh_str options) {
  const mh_host_api *host = inst->host;
  static const uint8_t byte = 1;
  mh_bytes frame = {&byte, 1};
  (void)device;
  (void)options;
  if (inst->is_open) return MH_ENOMEM;
  if (has(inst, "hangs in connect")) sleep_for_ever(NULL);
  if (has(inst, "exits in connect")) exit(3);
  if (has(inst, "never answers connect")) return MH_OK;
  inst->link = link;
  inst->links++;
  if (has(inst, "connects once") && inst->links > 1) {
    host->link_down(host->ctx, link, MH_EIO, str("once was enough"));
    return MH_OK;
  }
  inst->is_open = 1;
  host->link_event(host->ctx, link, MH_EVENT_PHASE, MH_PHASE_CONNECTING);
  if (has(inst, "receives before link_up")) host->rx_frame(host->ctx, link, frame, 0);
  host->link_event(host->ctx, link, MH_EVENT_PHASE, MH_PHASE_CONNECTED);
  static const char broken[] = {'a', (char)0xFF, 0};
  host->link_up(host->ctx, link, has(inst, "carries nothing") ? 0 : LONGEST,
                str(has(inst, "names its peer badly") ? broken : "faulty"));
  if (has(inst, "comes up twice")) host->link_up(host->ctx, link, LONGEST, str("faulty"));
  if (has(inst, "speaks of other links")) host->link_event(host->ctx, 99999, MH_EVENT_PHASE, 1);
  if (has(inst, "receives giants")) {
    static const uint8_t bytes[MH_MAX_FRAME + 1];
    mh_bytes giant = {bytes, sizeof bytes};
    host->rx_frame(host->ctx, link, giant, 0);
  }
  return MH_OK;
}

/* Offers what is kept until the host has no room. */
static void offer(mh_inst *inst) {
  while (inst->count > 0) {
    struct frame *frame = &inst->kept[inst->first];
    mh_bytes bytes = {frame->bytes, frame->length};
    mh_status status = inst->host->rx_frame(inst->host->ctx, inst->link, bytes, 0);
    if (status == MH_AGAIN && has(inst, "cannot wait")) {
      inst->host->rx_frame(inst->host->ctx, inst->link, bytes, 0);
      return;
    }
    if (status == MH_AGAIN && !has(inst, "loses frames")) return;
    inst->first = (inst->first + 1) % ROOM;
    inst->count--;
  }
}

static void echo(mh_inst *inst, mh_bytes frame) {
  struct frame *kept = &inst->kept[(inst->first + inst->count++) % ROOM];
  kept->length = frame.len;
  memcpy(kept->bytes, frame.ptr, frame.len);
  if (has(inst, "changes frames") && frame.len > 2) kept->bytes[2] ^= 1;
  if (has(inst, "cuts frames") && frame.len > 10) kept->length--;
  if (has(inst, "swaps frames") && inst->sends % 2 == 1) return;
  if (has(inst, "swaps frames") && inst->count == 2) {
    struct frame first = inst->kept[inst->first];
    inst->kept[inst->first] = *kept;
    *kept = first;
  }
  offer(inst);
}

static mh_status send(mh_inst *inst, mh_link link, mh_bytes frame, uint64_t cookie) {
  const mh_host_api *host = inst->host;
  if (!inst->is_open || link != inst->link) return has(inst, "sends without a link") ? MH_OK : MH_ECLOSED;
  if (has(inst, "crashes in send")) {
    signal(SIGSEGV, SIG_DFL); /* whoever else watches for it, such as a sanitizer */
    *(volatile int *)0 = 0;
  }
  if (frame.len == 0 || frame.len > LONGEST) {
    if (!has(inst, "accepts any length")) return frame.len == 0 ? MH_EINVAL : MH_ETOOLONG;
    host->tx_done(host->ctx, cookie, MH_OK);
    return MH_OK;
  }
  inst->sends++;
  if (inst->count >= ROOM - 1 || inst->sends % 5 == 0) {
    if (has(inst, "answers what it refused")) host->tx_done(host->ctx, cookie, MH_OK);
    if (!has(inst, "never has room again")) host->writable(host->ctx, link);
    return MH_AGAIN;
  }
  echo(inst, frame);
  if (has(inst, "never is done")) return MH_OK;
  if (has(inst, "is done out of order")) {
    if (!inst->held) {
      inst->held = cookie;
      return MH_OK;
    }
    host->tx_done(host->ctx, cookie, MH_OK);
    host->tx_done(host->ctx, inst->held, MH_OK);
    inst->held = 0;
    return MH_OK;
  }
  if (has(inst, "is done after the end")) {
    inst->held = cookie;
    return MH_OK;
  }
  host->tx_done(host->ctx, cookie, MH_OK);
  if (has(inst, "is done twice")) host->tx_done(host->ctx, cookie, MH_OK);
  return MH_OK;
}

static mh_status disconnect(mh_inst *inst, mh_link link) {
  static const uint8_t byte = 1;
  mh_bytes frame = {&byte, 1};
  if (!inst->is_open || link != inst->link) return has(inst, "ends what has ended") ? MH_OK : MH_ECLOSED;
  if (has(inst, "never answers disconnect")) return MH_OK;
  down(inst, has(inst, "blames the peer") ? MH_EPEER : has(inst, "ends well") ? MH_OK : MH_ECANCELED);
  if (has(inst, "goes down twice")) inst->host->link_down(inst->host->ctx, link, MH_EIO, str(""));
  if (has(inst, "receives after link_down")) inst->host->rx_frame(inst->host->ctx, link, frame, 0);
  if (has(inst, "is done after the end") && inst->held) inst->host->tx_done(inst->host->ctx, inst->held, MH_ECLOSED);
  return MH_OK;
}

static mh_status rx_ready(mh_inst *inst, mh_link link) {
  if (!inst->is_open || link != inst->link) return MH_ECLOSED;
  offer(inst);
  return MH_OK;
}

static mh_status probe(mh_inst *inst, mh_link link) {
  if (!inst->is_open || link != inst->link) return MH_ECLOSED;
  if (has(inst, "ends what it probes")) down(inst, MH_EIO);
  return MH_OK;
}

/* ---- beside links ------------------------------------------------------------------------------------------------ */

static mh_status diagnostics(mh_inst *inst, mh_sink sink, void *ctx) {
  const char *text = has(inst, "has no words") ? "{\"half\":" : "{\"fault\":\"none\"}";
  mh_bytes chunk = {(const uint8_t *)text, strlen(text)};
  sink(ctx, chunk);
  return MH_OK;
}

static mh_status manage(mh_inst *inst, uint64_t request, mh_str verb, mh_str params) {
  (void)verb;
  (void)params;
  if (!has(inst, "answers twice") && !has(inst, "knows every verb")) return MH_ENOSUP;
  inst->host->managed(inst->host->ctx, request, has(inst, "answers twice") ? MH_ENOSUP : MH_OK, str("{}"));
  if (has(inst, "answers twice")) inst->host->managed(inst->host->ctx, request, MH_ENOSUP, str("{}"));
  return MH_OK;
}

static mh_status manage_cancel(mh_inst *inst, uint64_t request) {
  (void)inst;
  (void)request;
  return MH_ECLOSED;
}

/* ---- the description --------------------------------------------------------------------------------------------- */

static mh_transport_ops ops = {
    .struct_size = sizeof(mh_transport_ops),
    .validate = validate,
    .create = create,
    .start = start,
    .connect = connect,
    .send = send,
    .disconnect = disconnect,
    .probe = probe,
    .diagnostics = diagnostics,
    .stop = stop,
    .destroy = destroy,
    .rx_ready = rx_ready,
    .manage = manage,
    .manage_cancel = manage_cancel,
    .identity = identity,
};

static mh_option fault = {
    .struct_size = sizeof(mh_option),
    .type = MH_OPT_STRING,
    .name = "fault",
    .default_text = "none",
    .help = "What is wrong with the module.",
};

static mh_option token = {
    .struct_size = sizeof(mh_option),
    .type = MH_OPT_STRING,
    .name = "token",
    .default_text = "",
    .help = "What nobody may see.",
    .secret = 1,
};

static const mh_option *const options[] = {&fault, &token};

static mh_transport_info info = {
    .struct_size = sizeof(mh_transport_info),
    .abi_major = MH_ABI_MAJOR,
    .abi_minor_built = MH_ABI_MINOR,
    .abi_minor_needed = 0,
    .name = "faulty",
    .version = "0.1.0",
    .vendor = "fixture vendor",
    .license = "Apache-2.0",
    .ops = &ops,
    .options = options,
    .option_count = 2,
};

const mh_transport_info *mh_transport_entry_v1(void) {
  static mh_transport_info copies[2];
  static int calls;
  const char *wrong = getenv("FAULTY_DESCRIPTION");
  if (!wrong) return &info;
  if (strcmp(wrong, "short") == 0) info.struct_size = 40;
  if (strcmp(wrong, "major") == 0) info.abi_major = MH_ABI_MAJOR + 1;
  if (strcmp(wrong, "no vendor") == 0) info.vendor = "";
  if (strcmp(wrong, "no functions") == 0) info.ops = NULL;
  if (strcmp(wrong, "no send") == 0) ops.send = NULL;
  if (strcmp(wrong, "reserved") == 0) ops.reserved0 = 7;
  if (strcmp(wrong, "search without scan") == 0) info.caps = MH_CAP_SCAN;
  if (strcmp(wrong, "option name") == 0) fault.name = "Fault";
  if (strcmp(wrong, "option twice") == 0) token.name = "fault";
  if (strcmp(wrong, "option kind") == 0) fault.type = 9;
  if (strcmp(wrong, "option default") == 0) fault.type = MH_OPT_INT;
  if (strcmp(wrong, "option help") == 0) fault.help = "what is wrong";
  if (strcmp(wrong, "crash") == 0) raise(SIGKILL);
  if (strcmp(wrong, "threads") == 0) start_thread(sleep_for_ever, NULL);
  if (strcmp(wrong, "another each time") == 0) {
    copies[calls % 2] = info;
    return &copies[calls++ % 2];
  }
  return &info;
}
