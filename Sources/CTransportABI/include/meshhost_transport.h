/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * The module ABI: what a transport module (a .so that the host loads because a config names it) and the host agree on.
 * C11 and C++17; needs nothing but this file. Everything is of ABI 1.0 unless it says otherwise.
 *
 * A module exports one function, mh_transport_entry_v1, that returns a static description of the module. The host makes
 * an instance of it, opens links to devices, sends frames and is told what happens by callbacks in mh_host_api.
 *
 * OWNERSHIP
 *  O1 Whoever passes a pointer owns it; it is borrowed until the call returns. To keep something, copy it.
 *  O2 No allocation crosses the boundary: results leave through an mh_sink, secrets through the caller's buffer.
 *  O3 mh_transport_info, ops, options and their strings are static and never change.
 *  O4 An mh_inst belongs to the module from a successful create until destroy. mh_host_api and what it points to stay
 *     valid until destroy returns.
 *  O5 A create that fails leaves nothing to destroy.
 *  O6 A frame is one whole frame of the device's protocol, 1...max_frame bytes, never a part (but see MH_CAP_STREAM).
 *
 * THREADS
 *  T1 All ops of all instances are called on the loop thread, one at a time; mh_host_api.loop is that loop.
 *  T2 Ops return at once. Over 50 ms is counted against the module, over 2 s is logged with its name.
 *  T3 Host callbacks may come from any thread, also from inside an op. They never block and never call into ops: the
 *     host queues what they say and acts on it later, in the order of the calls of one thread.
 *  T4 After stopped only destroy comes. After destroy no callback may run; the host ignores and counts late ones, but
 *     the memory of mh_host_api may be gone then, so a module must keep no thread that uses it.
 *  T5 A module's own threads block all signals.
 *  T6 Forbidden: exit, abort, fork without exec, chdir, umask, setlocale, setenv, signal handlers, writing to stdout.
 *  T7 No C++ exception, longjmp or Swift error crosses the boundary.
 *
 * VERSIONS
 *  V1 The major is in the name of the entry symbol and in mh_transport_info. Different majors do not mix.
 *  V2 Within a major, structs only grow at their end. Each starts with struct_size, the bytes its maker filled; a reader
 *     uses no field beyond it (MH_HAS). A function that is missing or null is not supported.
 *  V3 A module says the lowest minor it can live with (abi_minor_needed); a host below that refuses it.
 *  V4 Codes only get added. An unknown negative status is an error of no known kind; an unknown event is ignored.
 */
#ifndef MESHHOST_TRANSPORT_H
#define MESHHOST_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MH_ABI_MAJOR 1u /* also in the entry symbol's name */
#define MH_ABI_MINOR 2u /* grows when something is added; every addition says its minor */
#define MH_ENTRY_SYMBOL "mh_transport_entry_v1"
#define MH_MAX_FRAME 4096u /* no frame is longer, whatever a link reports */

/* Whether the struct that p points to has this field: MH_HAS(mh_host_api, host, link_event). */
#define MH_HAS(type, p, field) ((p)->struct_size >= offsetof(type, field) + sizeof((p)->field))

/* ---- status ------------------------------------------------------------------------------------------------------ */

/* The result of an op, of a send, of a link. There are no C enums in the ABI. Negative values are errors. The comment
 * says what the host makes of it: "transient" is tried again with backoff, "permanent" waits for a person. */
typedef int32_t mh_status;
#define MH_OK 0
#define MH_AGAIN 1         /* no room now; not an error. send: wait for writable. rx_frame: wait for rx_ready */
#define MH_ECLOSED -1      /* the link is closed, by this side or for a reason unknown; transient */
#define MH_EINVAL -2       /* an argument is not acceptable; permanent */
#define MH_ENOSUP -3       /* this module or device cannot do it; permanent */
#define MH_EIO -4          /* the connection failed for a reason without a code of its own; transient */
#define MH_EAUTH -5        /* pairing, PIN, key or token refused; permanent */
#define MH_ENOMEM -6       /* no memory, descriptors or slots; transient */
#define MH_ETIMEDOUT -7    /* no connection within the deadline; transient */
#define MH_EREFUSED -8     /* the peer is there and refuses, nothing listens; transient */
#define MH_EHOST -9        /* the name has no address; transient */
#define MH_EPEER -10       /* the peer closed the link; transient */
#define MH_EADAPTER -11    /* the adapter or the network is away: the host waits for MH_EVENT_ADAPTER; transient */
#define MH_ECONTENDED -12  /* another host takes the device away again and again; transient */
#define MH_EPERM -13       /* the operating system refuses; permanent */
#define MH_ETOOLONG -14    /* the frame is longer than the link can carry; permanent */
#define MH_ECANCELED -15   /* ended because the host asked for it; transient */
#define MH_ENOTCONN -16    /* there is no link to do it on; transient */
#define MH_EDEADLINE -17   /* the peer did not answer in time, the link may still be good; transient */
#define MH_EFULL -18       /* a bounded queue has no room and nothing will tell when it has; transient */
#define MH_EUNAVAIL -19    /* a service that this needs is not running; transient */
#define MH_ENOTDEVICE -20  /* the peer lacks the service or characteristic that the link needs; permanent */
#define MH_ECONFIG -21     /* an option is not acceptable; permanent */
#define MH_EINTERNAL -22   /* a fault in the module; fatal for the link */

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* UTF-8 text, not NUL-ended. ptr may be null when len is 0. Borrowed for the call. */
typedef struct mh_str {
  const char *ptr;
  size_t len;
} mh_str;

/* Bytes. ptr may be null when len is 0. Borrowed for the call. */
typedef struct mh_bytes {
  const uint8_t *ptr;
  size_t len;
} mh_bytes;

typedef struct mh_host_s mh_host_ctx; /* opaque, the host's */
typedef struct mh_inst_s mh_inst;     /* opaque, the module's */
typedef uint64_t mh_link;             /* one connection attempt and the link it becomes; given by the host, never reused */
struct uv_loop_s;                     /* libuv's loop; libuv is a shared library, so there is one copy in the process */

/* How results leave an op: called any number of times before the op returns, never after. No cross-free. */
typedef void (*mh_sink)(void *sink_ctx, mh_bytes chunk);

/* ---- what the host gives the module ------------------------------------------------------------------------------ */

/* Kinds of link_event and their values. */
#define MH_EVENT_PHASE 1          /* the link entered a phase; value is an MH_PHASE_... */
#define MH_EVENT_FRAMES_DROPPED 2 /* value frames from the device found no room in the module, since the last report */
#define MH_EVENT_BYTES_SKIPPED 3  /* value bytes belonged to no valid frame, since the last report */
#define MH_EVENT_ADAPTER 4        /* the adapter or network of this link became usable (1) or unusable (0). From 1.1 on also
                                     after link_down, until the device is connected again: so a device that waits for
                                     its adapter learns that it is back. A 1.0 host ignores that. */

#define MH_PHASE_IDLE 0
#define MH_PHASE_WAITING_FOR_ADAPTER 1
#define MH_PHASE_CONNECTING 2
#define MH_PHASE_DISCOVERING_SERVICES 3
#define MH_PHASE_DISCOVERING_CHARACTERISTICS 4
#define MH_PHASE_SUBSCRIBING 5
#define MH_PHASE_DISCOVERY_COMPLETE 6
#define MH_PHASE_CONNECTED 7
#define MH_PHASE_AUTO_RECONNECTING 8
#define MH_PHASE_RESTORING_STATE 9
#define MH_PHASE_DISCONNECTING 10

/* Kinds of metric. */
#define MH_METRIC_COUNTER 1 /* value is added to what was reported before */
#define MH_METRIC_GAUGE 2   /* value replaces what was reported before */

/* found: the medium has no signal strength. */
#define MH_RSSI_UNKNOWN INT32_MIN

/* Levels of log, those of syslog (RFC 5424 section 6.2.1). */
#define MH_LOG_ERROR 3
#define MH_LOG_WARNING 4
#define MH_LOG_NOTICE 5
#define MH_LOG_INFO 6
#define MH_LOG_DEBUG 7

/* Handed to create; valid until destroy returns. All functions: any thread, never block, never call into ops. */
typedef struct mh_host_api {
  uint32_t struct_size; /* bytes that the host really filled */
  uint32_t abi_minor;   /* the host's MH_ABI_MINOR */
  mh_host_ctx *ctx;     /* first argument of every callback, verbatim */
  struct uv_loop_s *loop; /* the loop that ops are called on. A module may put its own handles on it, from the loop
                             thread, and must close them, and see their close callbacks, before stopped. */

  /* One log record. Never payloads, keys, PINs or coordinates. */
  void (*log)(mh_host_ctx *, int32_t level, mh_str message);

  /* CLOCK_MONOTONIC. */
  uint64_t (*now_ns)(mh_host_ctx *);

  /* One frame from the device; at_ns is when it arrived, 0 for now. The bytes are copied.
   *  MH_OK       taken
   *  MH_AGAIN    not taken, the host's queue for this link is full: keep the frame, stop reading from the device, and
   *              offer it again after ops.rx_ready. Offering before that, or having no rx_ready, loses the frame; the
   *              host counts it.
   *  MH_ECLOSED  this link is not up: drop the frame
   *  MH_EINVAL   empty, or longer than MH_MAX_FRAME */
  mh_status (*rx_frame)(mh_host_ctx *, mh_link, mh_bytes frame, uint64_t at_ns);

  /* Frames of up to max_frame bytes (1...MH_MAX_FRAME) can be sent. peer: the other end as a person would write it. */
  void (*link_up)(mh_host_ctx *, mh_link, uint32_t max_frame, mh_str peer);

  /* The link ended; the last word about this link but MH_EVENT_ADAPTER, exactly once for every connect that returned
   * MH_OK. Before link_up it says that the attempt failed. why is MH_ECANCELED when it answers disconnect, else an error;
   * detail says for a person what failed and what to try. Sends still unanswered end with it. */
  void (*link_down)(mh_host_ctx *, mh_link, mh_status why, mh_str detail);

  /* After send has answered MH_AGAIN: there is room again. */
  void (*writable)(mh_host_ctx *, mh_link);

  /* How an accepted send ended; exactly once for each, in the order of the sends. May come before send returns. */
  void (*tx_done)(mh_host_ctx *, uint64_t cookie, mh_status);

  /* A device was seen while scanning; duplicates are welcome. address is what the user would put into the option that
   * says where the device is. name and adv come from the air: they may hold anything, adv may be empty. */
  void (*found)(mh_host_ctx *, mh_str address, mh_str name, int32_t rssi_dbm, mh_bytes adv);

  /* A figure for the host's diagnostics and metrics; name is lower_snake_case. */
  void (*metric)(mh_host_ctx *, mh_str name, int32_t kind, double value);

  /* Answers stop, once: every link has ended, every thread is joined, every handle closed. */
  void (*stopped)(mh_host_ctx *);

  /* Copies the secret with this name, at most cap bytes, into buf and its length into *len. MH_ENOSUP where the host has
   * no secret store (secrets in options arrive resolved, so a module seldom needs this); MH_ETOOLONG with *len set to
   * the size needed. */
  mh_status (*secret)(mh_host_ctx *, mh_str key, char *buf, size_t cap, size_t *len);

  /* What else happens on a link: MH_EVENT_... and its value. */
  void (*link_event)(mh_host_ctx *, mh_link, int32_t kind, uint64_t value);

  /* ABI 1.1. How an accepted request ended; exactly once for each manage that returned MH_OK, and before stopped.
   * result_json is a JSON object of at most 1 MiB: of MH_OK what the verb says, of an error {"detail": "..."}, which says
   * for a person what failed and what to try. May come before manage returns. */
  void (*managed)(mh_host_ctx *, uint64_t request, mh_status, mh_str result_json);

  /* ABI 1.2. The search that scan began could not begin, or has ended by itself. why is an error; detail says for a person
   * what failed and what to try. Nothing is found after it, and the host does not end this search any more: it begins a new
   * one when it wants one. Not for a search that the host has ended. May come before scan returns. */
  void (*scan_failed)(mh_host_ctx *, mh_status why, mh_str detail);
} mh_host_api;

/* ---- what the module gives the host ------------------------------------------------------------------------------ */

/* Static storage, never freed. "Optional" functions may be null. */
typedef struct mh_transport_ops {
  uint32_t struct_size;
  uint32_t reserved0; /* 0 */

  /* Optional. Checks one device's options (a JSON object) beyond what the option table says, without touching the
   * outside world; may be called without any instance. Each problem is one chunk for the sink: a JSON object
   * {"ptr": "/channel", "msg": "...", "hint": "..."}, where ptr is a JSON pointer ("" for the whole) and hint may be
   * missing. Returns MH_OK without problems, else MH_EINVAL. */
  mh_status (*validate)(mh_str options_json, mh_sink errors, void *sink_ctx);

  /* Makes an instance in *out. With MH_CAP_MULTILINK there is one for all devices of the module and config_json is {};
   * without it there is one per device, made with the device's options (and one made with {} for scanning). */
  mh_status (*create)(const mh_host_api *, mh_str config_json, mh_inst **out);

  /* Comes once, after create; from here on callbacks may come. On failure destroy follows. */
  mh_status (*start)(mh_inst *);

  /* Optional; needs MH_CAP_SCAN. Begins (on = 1) or ends (on = 0) reporting devices with found. An error: nothing was begun.
   * What goes wrong later is told with scan_failed. filter_json is a JSON object, of which members that are not known are
   * ignored: at the beginning {"devices": [{device}, ...]}, the configured ones of the module, for those that have no other
   * way to know where to look ({device} as in the verbs of manage), or {}. */
  mh_status (*scan)(mh_inst *, int32_t on, mh_str filter_json);

  /* Begins to open a link to a device. device is its configured name, for logs and diagnostics. options_json has its
   * options as the user wrote them, checked against the table; defaults are the module's to fill in. MH_OK: link_up or
   * link_down follows. An error: the attempt never began and no link_down follows. */
  mh_status (*connect)(mh_inst *, mh_link, mh_str device, mh_str options_json);

  /* Sends one frame. Queue semantics: MH_OK means the bytes are copied and exactly one tx_done(cookie) follows, in order;
   * MH_AGAIN means not taken, and one writable follows; an error means not taken, and nothing follows. */
  mh_status (*send)(mh_inst *, mh_link, mh_bytes frame, uint64_t cookie);

  /* Ends a link or an attempt; answered by link_down. For a link that has ended: MH_ECLOSED, nothing follows. */
  mh_status (*disconnect)(mh_inst *, mh_link);

  /* Optional. Asks the module to find out whether the peer is still there; if not, link_down follows. */
  mh_status (*probe)(mh_inst *, mh_link);

  /* Optional. One JSON object without secrets, in any number of chunks. What concerns one link stands under "links",
   * by the link's id in decimal: {"links": {"7": {...}}}. */
  mh_status (*diagnostics)(mh_inst *, mh_sink, void *sink_ctx);

  /* Comes once, after a successful start. Ends what is open (each open link gets its link_down) and then calls stopped,
   * later or at once. */
  mh_status (*stop)(mh_inst *);

  /* Frees the instance. After stopped, or after a failed start. No host callback during or after it. */
  void (*destroy)(mh_inst *);

  /* Optional. rx_frame has answered MH_AGAIN on this link: there is room again. */
  mh_status (*rx_ready)(mh_inst *, mh_link);

  /* Optional. As send, but tx_done does not wait for the peer's acknowledgement. Used with
   * MH_CAP_SEND_WITHOUT_RESPONSE. */
  mh_status (*send_without_response)(mh_inst *, mh_link, mh_bytes frame, uint64_t cookie);

  /* Optional; ABI 1.1. Begins something that is neither a link nor a scan: see MH_VERB_... request is given by the host
   * and never reused; params_json is a JSON object, of which members that are not known are ignored. MH_OK: one
   * managed(request) follows. An error: nothing was begun and nothing follows; MH_ENOSUP for a verb that is not known. */
  mh_status (*manage)(mh_inst *, uint64_t request, mh_str verb, mh_str params_json);

  /* Optional; ABI 1.1. The host wants a request no more: its managed follows soon, with MH_ECANCELED or with how it ended
   * all the same. For a request that has ended: MH_ECLOSED, nothing follows. */
  mh_status (*manage_cancel)(mh_inst *, uint64_t request);

  /* Optional; ABI 1.2. Which device these options mean, as one text in any number of chunks, for a person to read: the same
   * for two devices of this module that are one, however the options are spelt. Two such devices of a config would take the
   * link from each other, and are an error in it. Nothing where several may be the same. options_json is as for validate,
   * which has found nothing wrong with it; may be called without any instance, and touches nothing of the outside world. */
  mh_status (*identity)(mh_str options_json, mh_sink, void *sink_ctx);
} mh_transport_ops;

/* Verbs of manage. {device} is {"device": "NAME", "options": {...}}: a configured device's name and its options as connect
 * gets them, or, of a device that is not configured, its address as the name and what is known as options.
 *
 * MH_VERB_PAIR     Pairs with a device, so that links to it need nobody: {device}. The host waits 90 s.
 *                  Result: {"address": "...", "name": "...", "was_bonded": false, "used_passkey": true}; was_bonded: the
 *                  keys were there before, nothing was done.
 * MH_VERB_UNPAIR   Forgets a device's keys: {device}. The host waits 15 s. Result: {"was_bonded": true}.
 * MH_VERB_EXAMINE  Looks whether what links need is there, changing nothing: {"devices": [{device}, ...]}, the configured
 *                  ones. The host waits 15 s.
 *                  Result: {"findings": [{"severity": "ok" | "note" | "problem", "subject": "hci0", "message": "...",
 *                  "advice": "..."}, ...]}; advice, the next step, is missing where nothing is to be done.
 *
 * MH_VERB_FORGET   ABI 1.2. A device is not configured any more, or not for this module: {"device": "NAME"}. What the module
 *                  keeps of it from link to link, in memory, can go as soon as no link of it is up; its keys stay. The host
 *                  waits 15 s. Result: {}.
 *
 * MH_VERB_DESCRIBE ABI 1.2. Tells what is known of an adapter: {"adapter": "hci1"}, by the name that options use. One that
 *                  nobody uses may be opened for the moment; one that somebody else uses is left to them. The host waits
 *                  15 s. Result: an object without secrets, as the module likes. */
#define MH_VERB_PAIR "pair"
#define MH_VERB_UNPAIR "unpair"
#define MH_VERB_EXAMINE "examine"
#define MH_VERB_FORGET "forget"
#define MH_VERB_DESCRIBE "describe"

/* Capabilities. */
#define MH_CAP_SCAN (1ull << 0)                  /* ops.scan looks for devices */
#define MH_CAP_MULTILINK (1ull << 1)             /* one instance carries the links of all devices */
#define MH_CAP_PAIRING (1ull << 2)               /* links need pairing before use */
#define MH_CAP_STREAM (1ull << 3)                /* reserved: bytes instead of frames, the host does the framing */
#define MH_CAP_PIPELINED_READS (1ull << 4)       /* several read commands may be under way at once on a link */
#define MH_CAP_SEND_WITHOUT_RESPONSE (1ull << 5) /* send_without_response differs from send */
#define MH_CAP_NETWORK (1ull << 6)               /* links go through the IP network and wait while it is away */
#define MH_CAP_ADAPTER (1ull << 7)               /* 1.1: links go through a local adapter, which makes one at a time; a
                                                    device's is its option "adapter", else one for all of the module */
#define MH_CAP_OWN_DEADLINES (1ull << 8)         /* 1.1: connect always ends by itself, with a reason that says what was too
                                                    slow; the host's own deadline is a last resort, of 200 s */

/* Kinds of option. */
#define MH_OPT_STRING 1
#define MH_OPT_INT 2
#define MH_OPT_BOOL 3     /* default_text is true or false */
#define MH_OPT_DURATION 4 /* text such as 250ms, 10s, 5m, 1h, 2d */

/* One option that a device of this module may have: gives validation, help and docs. */
typedef struct mh_option {
  uint32_t struct_size;
  int32_t type;             /* MH_OPT_... */
  const char *name;         /* ^[a-z][a-z0-9_]{0,62}$ */
  const char *default_text; /* null: the option must be given */
  const char *help;         /* one sentence */
  uint32_t secret;          /* 1: the value must never be shown */
  uint32_t reserved0;       /* 0 */
} mh_option;

/* The description. Readable without running anything but the entry function. */
typedef struct mh_transport_info {
  uint32_t struct_size;
  uint32_t abi_major;        /* MH_ABI_MAJOR */
  uint32_t abi_minor_built;  /* MH_ABI_MINOR of the header it was built with; informational */
  uint32_t abi_minor_needed; /* the lowest MH_ABI_MINOR of a host it can live with */
  const char *name;          /* ^[a-z][a-z0-9_-]{0,62}$; the name in configs. These five are printable ASCII. */
  const char *version;       /* such as 1.0.0 */
  const char *vendor;
  const char *license;       /* an SPDX expression */
  const char *url;           /* may be null */
  uint64_t caps;             /* MH_CAP_... */
  const mh_transport_ops *ops;
  const mh_option *const *options; /* option_count pointers */
  size_t option_count;
} mh_transport_info;

/* The one exported symbol. Pure: no threads, files, sockets or output before create. Returns the same pointer always. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const mh_transport_info *mh_transport_entry_v1(void);

#ifdef __cplusplus
}
#endif

#endif
