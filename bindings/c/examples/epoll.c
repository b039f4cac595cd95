/* A disk in an event loop: eight requests outstanding in real time, one timer.
 * `epoll [DRIVE [REQUESTS]]` reads at random, and prints the rate and the mean response time. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "traxtent.h"

enum { DEPTH = 8, SECTORS = 8 };

/* The time at which the disk's clock was zero, in nanoseconds of CLOCK_MONOTONIC. */
static uint64_t start;

static uint64_t monotonic(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Returns the time on the disk's clock, in picoseconds. */
static uint64_t now(void)
{
    return (monotonic() - start) * 1000;
}

/* Arms the timer for the disk's next event, or disarms it if no event is due. */
static int arm(int timer, uint64_t wake)
{
    struct itimerspec spec = {0};
    if (wake != TRAXTENT_NEVER) {
        uint64_t at = start + (wake + 999) / 1000; /* not before the event */
        spec.it_value.tv_sec = (time_t)(at / 1000000000);
        spec.it_value.tv_nsec = (long)(at % 1000000000);
    }
    return timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* Submits a read of SECTORS sectors at a random place. */
static traxtent_status submit(traxtent_disk *disk, uint64_t tag)
{
    uint64_t places = traxtent_sectors(disk) / SECTORS;
    uint64_t random = (uint64_t)rand() << 31 ^ (uint64_t)rand();
    traxtent_request request = {
        .op = TRAXTENT_READ,
        .tag = tag,
        .lbn = random % places * SECTORS,
        .sectors = SECTORS,
    };
    return traxtent_submit(disk, now(), &request);
}

static int fail(const char *reason)
{
    fprintf(stderr, "%s\n", reason);
    return 1;
}

static int serve(traxtent_disk *disk, int events, int timer, uint64_t requests)
{
    uint64_t submitted = 0, completed = 0, sum = 0;
    uint8_t *data = malloc((size_t)SECTORS * traxtent_sector_bytes(disk));
    if (!data)
        return fail("out of memory");
    while (completed < requests) {
        while (submitted < requests && traxtent_outstanding(disk) < DEPTH)
            if (submit(disk, submitted++))
                return fail(traxtent_error(disk));
        if (arm(timer, traxtent_next_wakeup(disk)))
            return perror("timerfd_settime"), 1;

        /* A server has its sockets in `events` too. */
        struct epoll_event event;
        uint64_t expirations;
        if (epoll_wait(events, &event, 1, -1) != 1 ||
            read(timer, &expirations, sizeof expirations) != sizeof expirations)
            return perror("epoll"), 1;

        traxtent_completion done;
        uint64_t time = now();
        while (traxtent_poll(disk, time, &done)) {
            if (done.status || traxtent_fetch(disk, done.lbn, done.sectors, data))
                return fail(traxtent_error(disk));
            sum += done.completed - done.submitted;
            completed++;
        }
    }
    free(data);
    printf("%" PRIu64 " reads, %d outstanding: %.0f per second, mean response time %.2f ms\n",
           completed, DEPTH, (double)completed / (double)now() * 1e12,
           (double)sum / (double)completed / 1e9);
    return 0;
}

int main(int argc, char **argv)
{
    char why[200];
    uint64_t requests = argc > 2 ? strtoull(argv[2], NULL, 10) : 200;
    if (requests == 0)
        return fail("REQUESTS must be a number above zero");
    traxtent_disk *disk = traxtent_new(argc > 1 ? argv[1] : "cheetah15k7", why, sizeof why);
    if (!disk)
        return fail(why);
    start = monotonic();
    int events = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN};
    if (events < 0 || timer < 0 || epoll_ctl(events, EPOLL_CTL_ADD, timer, &event))
        return perror("epoll"), 1;
    int status = serve(disk, events, timer, requests);
    close(timer);
    close(events);
    traxtent_free(disk);
    return status;
}
