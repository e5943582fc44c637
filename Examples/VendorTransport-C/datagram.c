/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * The transport module `datagram`: a device behind a Unix datagram socket, one frame a datagram. A program that simulates a
 * radio, or one that owns a radio which nothing else can reach, is such a device: it binds the socket and answers to the
 * address that a datagram came from.
 *
 * It needs the header of the SDK, libc and threads; Makefile builds it. The rules (O1, T3, ...) are those at the top of
 * meshhost_transport.h.
 *
 *     loop thread              the link's thread
 *     connect ──── starts ───▶ waits for the socket and for `wake`
 *     send    ───▶ socket      datagram ───▶ rx_frame; MH_AGAIN: keeps it, reads no more until rx_ready
 *       MH_AGAIN ── wake ────▶ waits until the socket takes more ───▶ writable
 *     disconnect ─ wake ─────▶ ends; link_down comes from disconnect
 *                              the peer is gone: link_down comes from here
 */
#define _GNU_SOURCE
#include <meshhost_transport.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "options.h"

enum { PATH_SIZE = sizeof(((struct sockaddr_un *)0)->sun_path) };

/* Without MH_CAP_MULTILINK there is one instance per device, and so one link at a time. */
struct mh_inst_s {
  const mh_host_api *host; /* stays valid until destroy returns (O4) */
  char own[PATH_SIZE];     /* where the socket of the open link is bound; empty for a name of the kernel's */
  mh_link link;
  int socket;
  int wake; /* an eventfd: something below has changed */
  pthread_t thread;
  int has_thread;
  /* Shared with the thread. */
  pthread_mutex_t lock;
  int quit;       /* disconnect wants the thread to end */
  int over;       /* the thread has told the end of the link */
  int is_full;    /* send was answered MH_AGAIN; writable is owed */
  int may_resume; /* the host takes frames again */
  int failure;    /* an errno that send has met, 0 for none */
};

static mh_str str(const char *text) { return (mh_str){text, strlen(text)}; }

static void wake(mh_inst *inst) {
  uint64_t one = 1;
  (void)!write(inst->wake, &one, sizeof one);
}

/* What an errno means for the host. */
static mh_status status_of(int error) {
  switch (error) {
  case ECONNREFUSED: return MH_EREFUSED;
  case ECONNRESET:
  case ENOTCONN: return MH_EPEER;
  case ENOENT:
  case ENOTDIR: return MH_EUNAVAIL;
  case EACCES:
  case EPERM: return MH_EPERM;
  case EMFILE:
  case ENFILE:
  case ENOMEM:
  case ENOBUFS: return MH_ENOMEM;
  case EMSGSIZE: return MH_ETOOLONG;
  default: return MH_EIO;
  }
}

__attribute__((format(printf, 4, 5))) static void link_down(
    mh_inst *inst, mh_link link, mh_status why, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  inst->host->link_down(inst->host->ctx, link, why, str(text));
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const mh_option path_option = {
    .struct_size = sizeof(mh_option),
    .type = MH_OPT_STRING,
    .name = "path",
    .help = "The socket that the device has bound.",
};
static const mh_option bind_option = {
    .struct_size = sizeof(mh_option),
    .type = MH_OPT_STRING,
    .name = "bind",
    .default_text = "",
    .help = "Where this side binds its own socket, for devices that answer to a fixed path; empty for a name of the kernel's.",
};
static const mh_option *const options[] = {&path_option, &bind_option};

static int fits(const char *path) { return strlen(path) < PATH_SIZE; }

static void complain(mh_sink errors, void *context, const char *json) {
  errors(context, (mh_bytes){(const uint8_t *)json, strlen(json)});
}

/* What the table cannot say. Also called by `meshhost check`: nothing of the outside world is touched. */
static mh_status validate(mh_str json, mh_sink errors, void *context) {
  char path[1024], own[1024];
  int has_path = read_option(json, "path", path, sizeof path);
  int has_own = read_option(json, "bind", own, sizeof own);
  mh_status status = MH_OK;
  if (has_path < 0 || (has_path && (!fits(path) || path[0] != '/'))) {
    complain(errors, context,
             "{\"ptr\":\"/path\",\"msg\":\"is not the path of a socket\","
             "\"hint\":\"an absolute path of at most 107 bytes\"}");
    status = MH_EINVAL;
  }
  if (has_own < 0 || (has_own && own[0] && (!fits(own) || own[0] != '/'))) {
    complain(errors, context,
             "{\"ptr\":\"/bind\",\"msg\":\"is not the path of a socket\","
             "\"hint\":\"an absolute path of at most 107 bytes, or nothing\"}");
    status = MH_EINVAL;
  }
  return status;
}

/* ---- life of an instance ----------------------------------------------------------------------------------------- */

static mh_status create(const mh_host_api *host, mh_str config, mh_inst **out) {
  (void)config; /* connect gets the same */
  mh_inst *inst = calloc(1, sizeof *inst);
  if (!inst) return MH_ENOMEM; /* a create that fails leaves nothing (O5) */
  inst->host = host;
  inst->socket = -1;
  inst->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (inst->wake < 0) {
    free(inst);
    return MH_ENOMEM;
  }
  pthread_mutex_init(&inst->lock, NULL);
  *out = inst;
  return MH_OK;
}

static mh_status start(mh_inst *inst) {
  (void)inst;
  return MH_OK;
}

static void destroy(mh_inst *inst) {
  pthread_mutex_destroy(&inst->lock);
  close(inst->wake);
  free(inst);
}

/* ---- the socket -------------------------------------------------------------------------------------------------- */

/* A socket file that a dead process left behind; one that somebody listens on is not touched. */
static void remove_stale(const struct sockaddr_un *address) {
  struct stat status;
  if (lstat(address->sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return;
  if (connect(probe, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED)
    unlink(address->sun_path);
  close(probe);
}

/* Binds a socket of our own, for the device to answer to, and connects it. Returns 0 or an errno; *what says at what. */
static int open_socket(mh_inst *inst, const char *path, const char *own, const char **what) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  *what = "socket";
  inst->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (inst->socket < 0) return errno;
  *what = own[0] ? own : "bind";
  memcpy(address.sun_path, own, strlen(own) + 1);
  if (own[0]) remove_stale(&address);
  /* Without a path the kernel picks a name that nobody has (unix(7), "autobind"). */
  socklen_t length = own[0] ? sizeof address : sizeof(sa_family_t);
  if (bind(inst->socket, (struct sockaddr *)&address, length) != 0) return errno;
  memcpy(inst->own, own, strlen(own) + 1);
  *what = path;
  memcpy(address.sun_path, path, strlen(path) + 1);
  if (connect(inst->socket, (struct sockaddr *)&address, sizeof address) != 0) return errno;
  return 0;
}

static void close_socket(mh_inst *inst) {
  if (inst->socket >= 0) close(inst->socket);
  inst->socket = -1;
  if (inst->own[0]) unlink(inst->own);
  inst->own[0] = 0;
}

/* ---- the link's thread ------------------------------------------------------------------------------------------- */

/* The peer is gone, unless disconnect was first. */
static void lose(mh_inst *inst, int error) {
  pthread_mutex_lock(&inst->lock);
  int is_first = !inst->quit;
  inst->over = is_first;
  mh_link link = inst->link;
  pthread_mutex_unlock(&inst->lock);
  if (is_first) link_down(inst, link, status_of(error), "the device is gone (%s); is its program running?", strerror(error));
}

/* Takes what has come. Returns the bytes of a frame that the host has no room for, 0 when all is read, -errno. */
static ssize_t read_frames(mh_inst *inst, uint8_t *buffer, size_t size) {
  for (;;) {
    /* With MSG_TRUNC the length is that of the datagram, also where it is longer than the buffer. */
    ssize_t length = recv(inst->socket, buffer, size, MSG_TRUNC);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
    if (length == 0) continue; /* an empty datagram; a frame has at least one byte (O6) */
    if ((size_t)length > size) {
      inst->host->link_event(inst->host->ctx, inst->link, MH_EVENT_BYTES_SKIPPED, (uint64_t)length);
      continue;
    }
    /* Host callbacks may come from any thread (T3). */
    mh_status status =
        inst->host->rx_frame(inst->host->ctx, inst->link, (mh_bytes){buffer, (size_t)length}, 0);
    if (status == MH_AGAIN) return length;
  }
}

static void *run(void *context) {
  mh_inst *inst = context;
  uint8_t frame[MH_MAX_FRAME];
  ssize_t kept = 0; /* bytes of a frame that the host had no room for */
  for (;;) {
    pthread_mutex_lock(&inst->lock);
    int quit = inst->quit, failure = inst->failure, is_full = inst->is_full, may_resume = inst->may_resume;
    inst->may_resume = 0;
    pthread_mutex_unlock(&inst->lock);
    if (quit) return NULL;
    if (failure) {
      lose(inst, failure);
      return NULL;
    }
    if (kept > 0 && may_resume &&
        inst->host->rx_frame(inst->host->ctx, inst->link, (mh_bytes){frame, (size_t)kept}, 0) != MH_AGAIN)
      kept = 0;
    struct pollfd fds[2] = {
        {.fd = inst->wake, .events = POLLIN},
        {.fd = inst->socket, .events = (short)((kept > 0 ? 0 : POLLIN) | (is_full ? POLLOUT : 0))},
    };
    if (poll(fds, 2, -1) < 0) continue; /* T5: no signal comes, but be it so */
    uint64_t count;
    if (fds[0].revents) (void)!read(inst->wake, &count, sizeof count);
    if (fds[1].revents & (POLLERR | POLLHUP)) {
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(inst->socket, SOL_SOCKET, SO_ERROR, &error, &size);
      lose(inst, error ? error : ECONNRESET);
      return NULL;
    }
    if (fds[1].revents & POLLOUT) {
      pthread_mutex_lock(&inst->lock);
      inst->is_full = 0;
      pthread_mutex_unlock(&inst->lock);
      inst->host->writable(inst->host->ctx, inst->link);
    }
    if (fds[1].revents & POLLIN) {
      kept = read_frames(inst, frame, sizeof frame);
      if (kept < 0) {
        lose(inst, (int)-kept);
        return NULL;
      }
    }
  }
}

/* A module's threads block all signals (T5). */
static int start_thread(mh_inst *inst) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failure = pthread_create(&inst->thread, NULL, run, inst);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  inst->has_thread = !failure;
  return failure;
}

static int is_over(mh_inst *inst) {
  pthread_mutex_lock(&inst->lock);
  int over = inst->over;
  pthread_mutex_unlock(&inst->lock);
  return over;
}

/* The thread ends by itself or was told to; either way soon. */
static void clean_up(mh_inst *inst) {
  if (inst->has_thread) pthread_join(inst->thread, NULL);
  inst->has_thread = 0;
  close_socket(inst);
}

/* ---- a link ------------------------------------------------------------------------------------------------------ */

static void report_phase(mh_inst *inst, uint64_t phase) {
  inst->host->link_event(inst->host->ctx, inst->link, MH_EVENT_PHASE, phase);
}

/* Returns at once (T2): local sockets connect without waiting. MH_OK means that link_up or link_down follows. */
static mh_status connect_link(mh_inst *inst, mh_link link, mh_str device, mh_str json) {
  char path[PATH_SIZE], own[PATH_SIZE] = "";
  const char *what;
  (void)device;
  if (inst->has_thread && !is_over(inst)) return MH_EFULL;
  clean_up(inst); /* of the link before */
  if (read_option(json, "path", path, sizeof path) != 1 || read_option(json, "bind", own, sizeof own) < 0)
    return MH_ECONFIG;
  inst->link = link;
  inst->quit = inst->over = inst->is_full = inst->may_resume = inst->failure = 0;
  report_phase(inst, MH_PHASE_CONNECTING);
  int error = open_socket(inst, path, own, &what);
  if (!error) {
    report_phase(inst, MH_PHASE_CONNECTED);
    inst->host->link_up(inst->host->ctx, link, MH_MAX_FRAME, str(path));
    what = "thread";
    error = start_thread(inst);
  }
  if (error) {
    close_socket(inst);
    link_down(inst, link, status_of(error), "%s: %s; is the device's program running?", what, strerror(error));
  }
  return MH_OK;
}

static mh_status disconnect_link(mh_inst *inst, mh_link link) {
  if (!inst->has_thread || inst->link != link) return MH_ECLOSED;
  pthread_mutex_lock(&inst->lock);
  int was_over = inst->over;
  inst->quit = 1;
  pthread_mutex_unlock(&inst->lock);
  wake(inst);
  clean_up(inst);
  if (was_over) return MH_ECLOSED;
  link_down(inst, link, MH_ECANCELED, "disconnected");
  return MH_OK;
}

/* MH_OK: the bytes are the kernel's, and exactly one tx_done follows, in the order of the sends (it may come first). */
static mh_status send_frame(mh_inst *inst, mh_link link, mh_bytes frame, uint64_t cookie) {
  if (!inst->has_thread || inst->link != link) return MH_ECLOSED;
  if (frame.len == 0) return MH_EINVAL; /* O6 */
  if (frame.len > MH_MAX_FRAME) return MH_ETOOLONG;
  ssize_t sent = send(inst->socket, frame.ptr, frame.len, MSG_NOSIGNAL);
  if (sent >= 0) {
    inst->host->tx_done(inst->host->ctx, cookie, MH_OK);
    return MH_OK;
  }
  int error = errno;
  if (error == EMSGSIZE) return MH_ETOOLONG;
  int is_full = error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
  pthread_mutex_lock(&inst->lock);
  if (is_full) inst->is_full = 1; else inst->failure = error;
  pthread_mutex_unlock(&inst->lock);
  wake(inst);
  return is_full ? MH_AGAIN : MH_ECLOSED;
}

static mh_status rx_ready(mh_inst *inst, mh_link link) {
  if (!inst->has_thread || inst->link != link) return MH_ECLOSED;
  pthread_mutex_lock(&inst->lock);
  inst->may_resume = 1;
  pthread_mutex_unlock(&inst->lock);
  wake(inst);
  return MH_OK;
}

/* Each open link gets its link_down; then stopped, after which only destroy comes (T4). */
static mh_status stop(mh_inst *inst) {
  disconnect_link(inst, inst->link);
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
    .rx_ready = rx_ready,
};

static const mh_transport_info info = {
    .struct_size = sizeof(mh_transport_info),
    .abi_major = MH_ABI_MAJOR,
    .abi_minor_built = MH_ABI_MINOR,
    .abi_minor_needed = 0,
    .name = "datagram",
    .version = "1.0.0",
    .vendor = "example",
    .license = "Apache-2.0",
    .ops = &ops,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
};

const mh_transport_info *mh_transport_entry_v1(void) { return &info; }
