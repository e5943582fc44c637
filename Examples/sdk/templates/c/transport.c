/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * A transport module to begin with: a device behind a Unix stream socket, each frame behind its length (two bytes,
 * little-endian). NAME comes from Makefile; what is of this device and no other is marked with YOURS.
 *
 * Everything happens on the host's loop: there is no thread and no lock. The rules (O1, T2, ...) are those at the top of
 * meshhost_transport.h.
 */
#define _GNU_SOURCE /* for uv.h */
#include <meshhost_transport.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "options.h"

enum { PATH_SIZE = 108, LENGTH_SIZE = 2, SEND_WINDOW = 64 };

/* From connect until libuv has closed its handle; only the newest is `open`. */
typedef struct link {
  uv_pipe_t pipe;
  uv_connect_t attempt;
  mh_inst *inst;
  mh_link id;
  int is_held;       /* rx_frame was answered MH_AGAIN: nothing is read until rx_ready */
  int owes_writable; /* send was answered MH_AGAIN */
  unsigned sending;  /* frames that libuv has not written yet */
  size_t filled;
  uint8_t buffer[LENGTH_SIZE + MH_MAX_FRAME];
} link_t;

/* Without MH_CAP_MULTILINK there is one instance per device, and so one link at a time. */
struct mh_inst_s {
  const mh_host_api *host; /* stays valid until destroy returns (O4) */
  link_t *open;
  unsigned handles; /* links whose handle is not closed */
  int is_stopping;
};

typedef struct write {
  uv_write_t request;
  link_t *link;
  uint64_t cookie;
  uint8_t bytes[];
} write_t;

static mh_str str(const char *text) { return (mh_str){text, strlen(text)}; }

/* YOURS: what an error of libuv means for the host; the header says what it makes of each status. */
static mh_status status_of(int error) {
  switch (error) {
  case UV_ECONNREFUSED: return MH_EREFUSED;
  case UV_ENOENT: return MH_EUNAVAIL;
  case UV_EACCES: return MH_EPERM;
  case UV_EMFILE:
  case UV_ENOMEM: return MH_ENOMEM;
  case UV_EOF:
  case UV_ECONNRESET:
  case UV_EPIPE: return MH_EPEER;
  default: return MH_EIO;
  }
}

/* ---- the end of a link ------------------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle) {
  link_t *link = handle->data;
  mh_inst *inst = link->inst;
  free(link);
  inst->handles--;
  /* The last word: every handle is closed (T4). */
  if (inst->is_stopping && inst->handles == 0) inst->host->stopped(inst->host->ctx);
}

/* link_down comes exactly once for each connect that returned MH_OK; sends that are under way end with it. */
static void end(link_t *link, mh_status why, const char *what) {
  mh_inst *inst = link->inst;
  if (inst->open != link) return;
  inst->open = NULL;
  inst->host->link_down(inst->host->ctx, link->id, why, str(what));
  uv_close((uv_handle_t *)&link->pipe, on_closed);
}

static void fail(link_t *link, int error) {
  char text[160];
  snprintf(text, sizeof text, "the device's socket: %s; is its program running?", uv_strerror(error));
  end(link, status_of(error), text);
}

/* ---- from the device --------------------------------------------------------------------------------------------- */

static void read_on(link_t *link);

/* YOURS: finds whole frames in the bytes that have come and hands them to the host. */
static void deliver(link_t *link) {
  const mh_host_api *host = link->inst->host;
  size_t start = 0;
  while (link->filled - start >= LENGTH_SIZE) {
    size_t length = link->buffer[start] | (size_t)link->buffer[start + 1] << 8;
    if (length == 0 || length > MH_MAX_FRAME) return end(link, MH_EIO, "the device sent a frame of no possible length");
    if (link->filled - start < LENGTH_SIZE + length) break;
    mh_bytes frame = {link->buffer + start + LENGTH_SIZE, length};
    if (host->rx_frame(host->ctx, link->id, frame, 0) == MH_AGAIN) {
      /* The frame is ours still: nothing is read, so that the device is held back, until rx_ready. */
      link->is_held = 1;
      uv_read_stop((uv_stream_t *)&link->pipe);
      break;
    }
    start += LENGTH_SIZE + length;
  }
  memmove(link->buffer, link->buffer + start, link->filled - start);
  link->filled -= start;
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *room) {
  link_t *link = handle->data;
  (void)suggested;
  *room = uv_buf_init((char *)link->buffer + link->filled, (unsigned)(sizeof link->buffer - link->filled));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *room) {
  link_t *link = stream->data;
  (void)room;
  if (count < 0) return fail(link, (int)count);
  link->filled += (size_t)count;
  deliver(link);
}

static void read_on(link_t *link) { uv_read_start((uv_stream_t *)&link->pipe, on_room, on_read); }

static mh_status rx_ready(mh_inst *inst, mh_link id) {
  link_t *link = inst->open;
  if (!link || link->id != id) return MH_ECLOSED;
  if (!link->is_held) return MH_OK;
  link->is_held = 0;
  deliver(link);
  if (inst->open == link && !link->is_held) read_on(link);
  return MH_OK;
}

/* ---- to the device ----------------------------------------------------------------------------------------------- */

static void on_written(uv_write_t *request, int error) {
  write_t *write = request->data;
  link_t *link = write->link;
  const mh_host_api *host = link->inst->host;
  link->sending--;
  if (link->inst->open == link) {
    host->tx_done(host->ctx, write->cookie, error ? status_of(error) : MH_OK);
    if (error) {
      fail(link, error);
    } else if (link->owes_writable && link->sending <= SEND_WINDOW / 2) {
      link->owes_writable = 0;
      host->writable(host->ctx, link->id);
    }
  }
  free(write);
}

/* MH_OK: the bytes are copied, and exactly one tx_done follows, in the order of the sends. */
static mh_status send_frame(mh_inst *inst, mh_link id, mh_bytes frame, uint64_t cookie) {
  link_t *link = inst->open;
  if (!link || link->id != id) return MH_ECLOSED;
  if (frame.len == 0) return MH_EINVAL; /* O6 */
  if (frame.len > MH_MAX_FRAME) return MH_ETOOLONG;
  if (link->sending >= SEND_WINDOW) {
    link->owes_writable = 1;
    return MH_AGAIN;
  }
  write_t *write = malloc(sizeof *write + LENGTH_SIZE + frame.len);
  if (!write) return MH_ENOMEM;
  write->request.data = write;
  write->link = link;
  write->cookie = cookie;
  /* YOURS: the frame as the device wants it. */
  write->bytes[0] = (uint8_t)frame.len;
  write->bytes[1] = (uint8_t)(frame.len >> 8);
  memcpy(write->bytes + LENGTH_SIZE, frame.ptr, frame.len);
  uv_buf_t bytes = uv_buf_init((char *)write->bytes, (unsigned)(LENGTH_SIZE + frame.len));
  int error = uv_write(&write->request, (uv_stream_t *)&link->pipe, &bytes, 1, on_written);
  if (error) {
    free(write);
    return status_of(error);
  }
  link->sending++;
  return MH_OK;
}

/* ---- a link ------------------------------------------------------------------------------------------------------ */

static void report_phase(link_t *link, uint64_t phase) {
  link->inst->host->link_event(link->inst->host->ctx, link->id, MH_EVENT_PHASE, phase);
}

static void on_connected(uv_connect_t *attempt, int error) {
  link_t *link = attempt->data;
  mh_inst *inst = link->inst;
  if (inst->open != link) return; /* disconnect was first */
  if (error) return fail(link, error);
  report_phase(link, MH_PHASE_CONNECTED);
  inst->host->link_up(inst->host->ctx, link->id, MH_MAX_FRAME, str("a Unix socket"));
  read_on(link);
}

/* Returns at once (T2). MH_OK means that link_up or link_down follows. */
static mh_status connect_link(mh_inst *inst, mh_link id, mh_str device, mh_str json) {
  char path[PATH_SIZE];
  (void)device;
  if (inst->open) return MH_EFULL;
  if (read_option(json, "path", path, sizeof path) != 1) return MH_ECONFIG;
  link_t *link = calloc(1, sizeof *link);
  if (!link) return MH_ENOMEM;
  if (uv_pipe_init(inst->host->loop, &link->pipe, 0) != 0) {
    free(link);
    return MH_ENOMEM;
  }
  link->inst = inst;
  link->id = id;
  link->pipe.data = link;
  link->attempt.data = link;
  inst->open = link;
  inst->handles++;
  report_phase(link, MH_PHASE_CONNECTING);
  /* YOURS: how the device is reached. A failure, too, is told through the callback. */
  uv_pipe_connect(&link->attempt, &link->pipe, path, on_connected);
  return MH_OK;
}

static mh_status disconnect_link(mh_inst *inst, mh_link id) {
  if (!inst->open || inst->open->id != id) return MH_ECLOSED;
  end(inst->open, MH_ECANCELED, "disconnected");
  return MH_OK;
}

/* ---- an instance ------------------------------------------------------------------------------------------------- */

static mh_status create(const mh_host_api *host, mh_str config, mh_inst **out) {
  (void)config; /* connect gets the same */
  *out = calloc(1, sizeof **out);
  if (!*out) return MH_ENOMEM; /* a create that fails leaves nothing (O5) */
  (*out)->host = host;
  return MH_OK;
}

static mh_status start(mh_inst *inst) {
  (void)inst;
  return MH_OK;
}

static mh_status stop(mh_inst *inst) {
  inst->is_stopping = 1;
  if (inst->open) end(inst->open, MH_ECANCELED, "the module stops");
  if (inst->handles == 0) inst->host->stopped(inst->host->ctx);
  return MH_OK;
}

static void destroy(mh_inst *inst) { free(inst); }

/* ---- the description --------------------------------------------------------------------------------------------- */

/* YOURS: the options of a device, in this table and in `validate`. */
static const mh_option path_option = {
    .struct_size = sizeof(mh_option),
    .type = MH_OPT_STRING,
    .name = "path",
    .help = "The socket that the device listens on.",
};
static const mh_option *const options[] = {&path_option};

/* What the table cannot say. Also called by `meshhost check`: nothing of the outside world is touched. */
static mh_status validate(mh_str json, mh_sink errors, void *context) {
  static const char problem[] =
      "{\"ptr\":\"/path\",\"msg\":\"is not the path of a socket\",\"hint\":\"an absolute path of at most 107 bytes\"}";
  char path[PATH_SIZE];
  if (read_option(json, "path", path, sizeof path) == 1 && path[0] == '/') return MH_OK;
  errors(context, (mh_bytes){(const uint8_t *)problem, sizeof problem - 1});
  return MH_EINVAL;
}

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

/* YOURS: version, vendor, license. */
static const mh_transport_info info = {
    .struct_size = sizeof(mh_transport_info),
    .abi_major = MH_ABI_MAJOR,
    .abi_minor_built = MH_ABI_MINOR,
    .abi_minor_needed = 0,
    .name = NAME,
    .version = "0.1.0",
    .vendor = "example",
    .license = "Apache-2.0",
    .ops = &ops,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
};

const mh_transport_info *mh_transport_entry_v1(void) { return &info; }
