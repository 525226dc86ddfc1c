/* A client that costs next to nothing: sends one request again and again, and times the answers.

   usage: load PORT CONNECTIONS IN_FLIGHT SECONDS REQUEST

   REQUEST is a file with one whole frame; only its correlation id changes. Every answer brings the next request, all
   that one reading of the socket allows in one writing. Answers must come in order. The first fifth of the time does
   not count. Prints: the bytes of all answers, all answers, those that count, their seconds, and the median and the 99th percentile of their
   times in microseconds. Ends with 3 and without a word when no answer came in time. One thread, one epoll loop. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { INPUT = 1 << 18, HEADER = 8, EVENTS = 256, SAMPLES = 1 << 22 };

struct connection {
    int fd;
    uint32_t next_id, sent_id; /* of the next answer, of the next request */
    char header[HEADER];       /* of an answer that is not all there */
    uint32_t have, skip;       /* bytes of it, bytes of the answer's body that are still to come */
    double *sent_s;            /* when the requests in flight left, by id modulo in_flight */
    char *out;                 /* room for as many requests as may be in flight */
    size_t out_at, out_end;
    int watches_out;
};

static char *request, input[INPUT];
static size_t request_size;
static uint32_t in_flight;
static uint32_t *samples_ns;
static size_t all_answers, answers, sampled, received;
static int counts, loop;

static void die(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, errno ? strerror(errno) : "the connection was closed");
    exit(1);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static uint32_t int32_at(const char *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return ntohl(value);
}

static void flush(struct connection *c) {
    int out;
    while (c->out_at < c->out_end) {
        ssize_t sent = send(c->fd, c->out + c->out_at, c->out_end - c->out_at, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) break;
        if (sent <= 0) die("send");
        c->out_at += sent;
    }
    if (c->out_at == c->out_end) c->out_at = c->out_end = 0;
    out = c->out_end > 0;
    if (out != c->watches_out) {
        struct epoll_event event = {.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c};
        if (epoll_ctl(loop, EPOLL_CTL_MOD, c->fd, &event)) die("epoll_ctl");
        c->watches_out = out;
    }
}

static void ask(struct connection *c, uint32_t count) {
    double sent_s = now_s();
    if (c->out_at) {
        memmove(c->out, c->out + c->out_at, c->out_end - c->out_at);
        c->out_end -= c->out_at;
        c->out_at = 0;
    }
    for (; count; count--) {
        uint32_t id = htonl(c->sent_id);
        memcpy(c->out + c->out_end, request, request_size);
        memcpy(c->out + c->out_end + 8, &id, 4);
        c->out_end += request_size;
        c->sent_s[c->sent_id++ % in_flight] = sent_s;
    }
    flush(c);
}

static void answered(struct connection *c, double at_s) {
    all_answers++;
    if (counts) {
        answers++;
        if (sampled < SAMPLES) samples_ns[sampled++] = (at_s - c->sent_s[c->next_id % in_flight]) * 1e9;
    }
    c->next_id++;
}

static void take(struct connection *c, const char *at, size_t left) {
    double at_s = now_s();
    uint32_t done = 0;
    received += left;
    while (left > 0) {
        if (c->skip) {
            size_t part = left < c->skip ? left : c->skip;
            at += part;
            left -= part;
            c->skip -= part;
        } else {
            size_t part = HEADER - c->have < left ? HEADER - c->have : left;
            memcpy(c->header + c->have, at, part);
            c->have += part;
            at += part;
            left -= part;
            if (c->have < HEADER) break;
            c->have = 0;
            if (int32_at(c->header + 4) != c->next_id) {
                fprintf(stderr, "load: answer %u came where %u was due\n", int32_at(c->header + 4), c->next_id);
                exit(1);
            }
            c->skip = int32_at(c->header) + 4 - HEADER;
        }
        if (!c->skip) {
            answered(c, at_s);
            done++;
        }
    }
    if (done) ask(c, done);
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void load_request(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) die(path);
    fseek(file, 0, SEEK_END);
    request_size = ftell(file);
    rewind(file);
    request = malloc(request_size);
    if (!request || fread(request, 1, request_size, file) != request_size) die(path);
    fclose(file);
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct epoll_event events[EVENTS];
    double seconds, start_s, from_s, end_s, at_s;
    int connections, on = 1;
    if (argc != 6) {
        fprintf(stderr, "usage: load PORT CONNECTIONS IN_FLIGHT SECONDS REQUEST\n");
        return 2;
    }
    connections = atoi(argv[2]);
    in_flight = atoi(argv[3]);
    seconds = atof(argv[4]);
    load_request(argv[5]);
    samples_ns = malloc(SAMPLES * sizeof *samples_ns);
    loop = epoll_create1(0);
    address.sin_port = htons(atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct connection *all = calloc(connections, sizeof *all);
    for (int i = 0; i < connections; i++) {
        struct connection *c = &all[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        c->fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) die("connect");
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        fcntl(c->fd, F_SETFL, O_NONBLOCK);
        c->sent_s = calloc(in_flight, sizeof *c->sent_s);
        c->out = malloc(in_flight * request_size);
        if (epoll_ctl(loop, EPOLL_CTL_ADD, c->fd, &event)) die("epoll_ctl");
    }
    for (int i = 0; i < connections; i++) ask(&all[i], in_flight);
    start_s = now_s();
    from_s = start_s + seconds / 5;
    end_s = start_s + seconds;
    for (at_s = start_s; at_s < end_s; at_s = now_s()) {
        int count = epoll_wait(loop, events, EVENTS, 100);
        if (!counts && at_s >= from_s) {
            counts = 1;
            from_s = at_s;
        }
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (events[i].events & EPOLLOUT) flush(c);
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
                ssize_t size = read(c->fd, input, INPUT);
                if (size == 0) errno = 0;
                if (size == 0 || (size < 0 && errno != EAGAIN)) die("read");
                if (size > 0) take(c, input, size);
            }
        }
    }
    qsort(samples_ns, sampled, sizeof *samples_ns, by_size);
    if (!sampled) return 3; /* No answer came in time: nothing is broken, but there is nothing to say. */
    printf("%zu %zu %zu %f %f %f\n", received, all_answers, answers, at_s - from_s, samples_ns[sampled / 2] / 1e3,
           samples_ns[sampled * 99 / 100] / 1e3);
    return 0;
}
