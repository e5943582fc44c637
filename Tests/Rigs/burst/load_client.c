/* SPDX-License-Identifier: Apache-2.0 */
/* meshhost: a host for mesh radios and other byte-link devices */

/* Many companion clients in one process: count and check numbered pushes, ask and check answers, or never read.
 * See README.md for options, commands and events. */
#define _GNU_SOURCE
#include "frames.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

enum question { TIME, BATTERY, CHANNEL, PATH, QUESTIONS };

struct client {
    int descriptor;
    bool stuck, connected, greeted, closed;
    uint64_t pushes, gaps;
    uint32_t first, next;
    bool any_push;
    uint64_t asked, answered;
    bool paused;                  /* was told that the radio is away, and asks again a little later */
    bool waiting;                 /* for an answer to `question` about `index`, asked at `since` */
    enum question question;
    uint32_t index;
    uint64_t since;
    size_t in_count;
    uint8_t in[1 << 16];
};

/* Times in nanoseconds, all of them. */
struct times {
    uint32_t *values;
    size_t count, capacity;
};

static struct client *clients;
static unsigned reading = 1, stuck, all, greeted;
static uint64_t expected, expected_told, rounds_wanted, timeout_s = 60;
static bool interactive, finishing, greet = true;
static const char *ask = "mix", *peer;
static uint64_t foreign, errors, wrong, noise, closed;
static struct times push_times, round_trips;
static int epoll, pause_clock;

enum { PAUSE_NS = 5000000 };

static void note(struct times *times, uint64_t value) {
    if (times->count == times->capacity) {
        times->capacity = times->capacity ? 2 * times->capacity : 1 << 16;
        times->values = need(realloc(times->values, times->capacity * sizeof *times->values));
    }
    times->values[times->count++] = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static int by_value(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static void print_times(const char *name, struct times *times) {
    if (!times->count) return;
    qsort(times->values, times->count, sizeof *times->values, by_value);
    printf(",\"%s\":{\"count\":%zu,\"median_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f}", name, times->count,
           times->values[times->count / 2] / 1e3, times->values[times->count * 99 / 100] / 1e3,
           times->values[times->count - 1] / 1e3);
}

/* Asking ----------------------------------------------------------------------------------------------------------- */

static void send_command(struct client *client, const uint8_t *payload, size_t length) {
    uint8_t frame[LARGEST_PAYLOAD + HEADER];
    size_t size = put_frame(frame, '<', payload, length);
    if (send(client->descriptor, frame, size, MSG_NOSIGNAL) != (ssize_t)size && !client->stuck)
        event("send_failed", "\"error\":\"%s\"", strerror(errno));
}

static void ask_next(struct client *client) {
    if (client->waiting || client->paused || client->stuck || client->closed || client->asked >= rounds_wanted) return;
    unsigned number = (unsigned)(client - clients);
    client->question = !strcmp(ask, "time")      ? TIME
                       : !strcmp(ask, "battery") ? BATTERY
                       : !strcmp(ask, "channel") ? CHANNEL
                       : !strcmp(ask, "path")    ? PATH
                                                 : (enum question)((number + client->asked) % QUESTIONS);
    client->index = (uint32_t)(number * 37 + client->asked);
    uint8_t path[34] = {42};
    put32(path + 2, client->index);
    client->asked++;
    client->waiting = true;
    client->since = now_ns();
    switch (client->question) {
    case TIME: send_command(client, (const uint8_t[]){5}, 1); break;
    case BATTERY: send_command(client, (const uint8_t[]){20}, 1); break;
    case CHANNEL: send_command(client, (const uint8_t[]){31, (uint8_t)client->index}, 2); break;
    default: send_command(client, path, sizeof path); break;
    }
}

/* Whether this answers what the client asked. */
static bool answers(const struct client *client, const uint8_t *reply, size_t length) {
    char name[32] = "";
    switch (client->question) {
    case TIME: return reply[0] == 9 && length == 5;
    case BATTERY: return reply[0] == 12 && length == 11 && get16(reply + 1) == 4100;
    case PATH: return reply[0] == 22 && length == 6 && get32(reply + 1) == client->index;
    default:
        snprintf(name, sizeof name, "channel %u", (uint8_t)client->index);
        return reply[0] == 18 && length == 50 && reply[1] == (uint8_t)client->index
            && !strcmp((const char *)reply + 2, name) && reply[49] == (uint8_t)client->index;
    }
}

static void all_greeted(void) {
    event("connected", "\"clients\":%u,\"stuck\":%u", reading, stuck);
    for (unsigned i = 0; i < all; i++) ask_next(&clients[i]);
}

static void take_reply(struct client *client, const uint8_t *reply, size_t length) {
    if (!client->greeted) {
        if (reply[0] != 5) return;                /* somebody else's, on a relay that hands everything to everybody */
        client->greeted = true;
        if (++greeted == reading) all_greeted();
        return;
    }
    if (!client->waiting) {
        foreign++;
        return;
    }
    if (reply[0] == 1) {
        errors++;
        client->paused = true;
        timerfd_settime(pause_clock, 0, &(struct itimerspec){.it_value.tv_nsec = PAUSE_NS}, NULL);
    } else if (!answers(client, reply, length)) {
        foreign++, wrong++;
        return;
    }
    client->waiting = false;
    client->answered++;
    if (!client->paused) note(&round_trips, now_ns() - client->since);
    ask_next(client);
}

static void take_push(struct client *client, const uint8_t *push, size_t length) {
    if (push[0] != PUSH_CODE || length < SMALLEST_PUSH) return;
    uint32_t sequence = get32(push + PUSH_SEQUENCE);
    if (!client->any_push) client->any_push = true, client->first = sequence;
    else if (sequence != client->next) client->gaps++;
    client->next = sequence + 1;
    client->pushes++;
    note(&push_times, now_ns() - get64(push + PUSH_TIME));
}

/* Progress --------------------------------------------------------------------------------------------------------- */

static uint64_t fewest_pushes(void) {
    uint64_t fewest = UINT64_MAX;
    for (unsigned i = 0; i < reading; i++)
        if (clients[i].pushes < fewest) fewest = clients[i].pushes;
    return fewest;
}

static bool rounds_done(void) {
    for (unsigned i = 0; i < reading; i++)
        if (clients[i].answered < rounds_wanted && !clients[i].closed) return false;
    return true;
}

/* After `finish`: whether every question that was asked has an answer. */
static void tell_idle(void) {
    if (!finishing) return;
    for (unsigned i = 0; i < reading; i++)
        if (clients[i].waiting && !clients[i].closed) return;
    finishing = false;
    event("idle", "\"answered_first\":%lu", clients[0].answered);
}

static void end_pauses(void) {
    uint64_t expirations;
    if (read(pause_clock, &expirations, sizeof expirations) < 0) return;
    for (unsigned i = 0; i < reading; i++) {
        clients[i].paused = false;
        ask_next(&clients[i]);
    }
}

static bool pushes_done(void) {
    bool done = greeted == reading && fewest_pushes() >= expected;
    if (done && expected && expected_told != expected) {
        expected_told = expected;
        event("reached", "\"pushes\":%lu", expected);
    }
    return done;
}

static int result(const char *why) {
    uint64_t received = 0, most = 0, gaps = 0;
    uint32_t first = clients[0].first;
    bool same_first = true;
    uint64_t answered = 0;
    for (unsigned i = 0; i < reading; i++) {
        received += clients[i].pushes, gaps += clients[i].gaps, answered += clients[i].answered;
        if (clients[i].pushes > most) most = clients[i].pushes;
        same_first = same_first && clients[i].first == first;
    }
    bool good = !*why && !closed && !gaps && !foreign && !errors && fewest_pushes() >= expected && rounds_done();
    printf("{\"ev\":\"result\",\"ok\":%s,\"why\":\"%s\",\"clients\":%u,\"received\":%lu,\"fewest\":%lu,\"most\":%lu,"
           "\"first\":%ld,\"gaps\":%lu,\"noise\":%lu,\"closed\":%lu,\"answered\":%lu,\"foreign\":%lu,\"wrong\":%lu,"
           "\"errors\":%lu",
           good ? "true" : "false", why, reading, received, fewest_pushes(), most,
           received && same_first ? (long)first : -1, gaps, noise, closed, answered, foreign, wrong, errors);
    print_times("push", &push_times);
    print_times("round_trip", &round_trips);
    puts("}");
    fflush(stdout);
    return good ? 0 : 1;
}

/* Input ------------------------------------------------------------------------------------------------------------ */

static void connected(struct client *client) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(client->descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) die("%s: %s", peer, strerror(error));
    client->connected = true;
    struct epoll_event wanted = {.events = client->stuck ? 0 : EPOLLIN, .data.ptr = client};
    epoll_ctl(epoll, EPOLL_CTL_MOD, client->descriptor, &wanted);
    if (greet) send_command(client, (const uint8_t *)"\x01\x03      load", 12);
    if (!greet && !client->stuck) {
        client->greeted = true;
        if (++greeted == reading) all_greeted();
    }
}

static void readable(struct client *client) {
    ssize_t got = recv(client->descriptor, client->in + client->in_count, sizeof client->in - client->in_count, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        closed++, client->closed = true;
        epoll_ctl(epoll, EPOLL_CTL_DEL, client->descriptor, NULL);
        event("closed", "\"client\":%u,\"why\":\"%s\"", (unsigned)(client - clients), got ? strerror(errno) : "end");
        return;
    }
    client->in_count += (size_t)got;
    size_t done = 0, used = 0, length = 0;
    const uint8_t *payload;
    while ((payload = next_frame(client->in + done, client->in_count - done, '>', &length, &used, &noise))) {
        if (payload[0] >= 0x80) take_push(client, payload, length);
        else take_reply(client, payload, length);
        done += used;
    }
    done += used;
    memmove(client->in, client->in + done, client->in_count - done);
    client->in_count -= done;
}

/* False when the work is to end. */
static bool command(char *line) {
    char word[16] = "";
    unsigned long value = 0;
    int words = sscanf(line, "%15s %lu", word, &value);
    bool good = true;
    if (words == 2 && !strcmp(word, "expect")) expected = value;
    else if (words == 2 && !strcmp(word, "rounds")) {
        rounds_wanted += value;
        for (unsigned i = 0; i < reading; i++) ask_next(&clients[i]);
    } else if (!strcmp(word, "finish")) rounds_wanted = 0, finishing = true;
    else if (!strcmp(word, "end")) return false;
    else good = !strcmp(word, "status");
    event("command", "\"cmd\":\"%s\",\"ok\":%s,\"error\":\"expect N, rounds N, finish, status, end\",\"fewest\":%lu,\"right\":%zu", line,
          good ? "true" : "false", fewest_pushes(), round_trips.count);
    return true;
}

static bool read_commands(void) {
    static char text[1024];
    static size_t count;
    ssize_t got = read(0, text + count, sizeof text - count);
    if (got <= 0) return false;
    count += (size_t)got;
    char *begin = text, *end;
    while ((end = memchr(begin, '\n', (size_t)(text + count - begin)))) {
        *end = 0;
        if (!command(begin)) return false;
        begin = end + 1;
    }
    count -= (size_t)(begin - text);
    memmove(text, begin, count);
    return true;
}

static void read_options(char **words) {
    for (; *words; words++) {
        if (!strcmp(*words, "--interactive")) interactive = true;
        else if (!strcmp(*words, "--no-greeting")) greet = false;
        else if (!strcmp(*words, "--stuck")) stuck = 1;
        else if (!words[1]) die("unknown option, or no value: %s", *words);
        else if (!strcmp(*words, "--connect")) peer = *++words;
        else if (!strcmp(*words, "--clients")) reading = (unsigned)atoi(*++words);
        else if (!strcmp(*words, "--expect")) expected = strtoul(*++words, NULL, 10);
        else if (!strcmp(*words, "--rounds")) rounds_wanted = strtoul(*++words, NULL, 10);
        else if (!strcmp(*words, "--ask")) ask = *++words;
        else if (!strcmp(*words, "--timeout")) timeout_s = strtoul(*++words, NULL, 10);
        else die("unknown option %s", *words);
    }
    if (!peer || !reading) die("--connect HOST:PORT|unix:PATH and at least one client are needed");
}

static void connect_client(struct client *client) {
    struct sockaddr_storage address;
    socklen_t size = parse_address(peer, &address);
    client->descriptor = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->descriptor < 0) die("socket: %s", strerror(errno));
    /* Little room, so that a client that does not read is noticed before megabytes lie in its kernel. */
    if (client->stuck) setsockopt(client->descriptor, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int));
    if (address.ss_family != AF_UNIX)
        setsockopt(client->descriptor, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (connect(client->descriptor, (struct sockaddr *)&address, size)) die("%s: %s", peer, strerror(errno));
    nonblocking(client->descriptor);
    struct epoll_event wanted = {.events = EPOLLOUT, .data.ptr = client};
    epoll_ctl(epoll, EPOLL_CTL_ADD, client->descriptor, &wanted);
}

int main(int count, char **words) {
    (void)count;
    read_options(words + 1);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    all = reading + stuck;
    clients = need(calloc(all, sizeof *clients));
    for (unsigned i = 0; i < all; i++) clients[i].stuck = i >= reading, connect_client(&clients[i]);

    int clock = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    timerfd_settime(clock, 0, &(struct itimerspec){.it_value.tv_sec = (time_t)timeout_s}, NULL);
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = &clock};
    epoll_ctl(epoll, EPOLL_CTL_ADD, clock, &wanted);
    pause_clock = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    wanted.data.ptr = &pause_clock;
    epoll_ctl(epoll, EPOLL_CTL_ADD, pause_clock, &wanted);
    if (interactive) {
        wanted.data.ptr = NULL;
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &wanted)) die("standard input cannot be waited for");
    }
    for (;;) {
        struct epoll_event ready[64];
        int many = epoll_wait(epoll, ready, 64, -1);
        for (int i = 0; i < many; i++) {
            if (ready[i].data.ptr == &clock) return result("timeout");
            if (ready[i].data.ptr == &pause_clock) {
                end_pauses();
                continue;
            }
            if (!ready[i].data.ptr) {
                if (!read_commands()) return result("");
                continue;
            }
            struct client *client = ready[i].data.ptr;
            if (!client->connected) connected(client);
            else if (!client->stuck) readable(client);
            else epoll_ctl(epoll, EPOLL_CTL_DEL, client->descriptor, NULL);   /* hung up: nothing to do about it */
        }
        tell_idle();
        bool done = pushes_done();
        if (!interactive && done && rounds_done()) return result("");
        if (!interactive && closed == reading) return result("closed");
    }
}
