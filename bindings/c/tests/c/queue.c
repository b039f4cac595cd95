/* Submits the requests from standard input, and prints the completions.
 * `queue DRIVE`: each line of input is "now op lbn sectors flags", in order of time. Each line of
 * output is "tag submitted completed status", in order of completion. Times are in picoseconds.
 * Tags count from 1000. */
#include <inttypes.h>
#include <stdio.h>
#include "traxtent.h"

static uint8_t data[1 << 20];

static int failed(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 1;
}

/* Prints the completions by `now`, which must all be at `wake`. */
static int print(traxtent_disk *disk, uint64_t now, uint64_t wake)
{
    traxtent_completion done;
    uint64_t before = traxtent_outstanding(disk);
    while (traxtent_poll(disk, now, &done)) {
        const traxtent_breakdown *b = &done.breakdown;
        if (done.completed != wake)
            return failed("a completion that is not at the wake-up");
        if (b->queue + b->overhead + b->seek + b->settle + b->head_switch + b->rotation +
                b->transfer + b->bus != done.completed - done.submitted)
            return failed("the breakdown is not the response time");
        if (traxtent_outstanding(disk) != --before)
            return failed("a completion that does not lower the number outstanding by one");
        printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n", done.tag, done.submitted,
               done.completed, (int)done.status);
    }
    return 0;
}

/* Prints the completions up to `until`. Polling between the wake-ups too must change nothing. */
static int run(traxtent_disk *disk, uint64_t until)
{
    uint64_t wake;
    while ((wake = traxtent_next_wakeup(disk)) <= until) {
        uint64_t now = traxtent_now(disk);
        if (print(disk, now + (wake - now) / 2, wake) || print(disk, wake, wake))
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    char why[200];
    traxtent_disk *disk = argc == 2 ? traxtent_new(argv[1], why, sizeof why) : NULL;
    if (!disk)
        return failed(argc == 2 ? why : "usage: queue DRIVE");
    traxtent_request request = {.tag = 1000, .data = data};
    uint64_t now;
    while (scanf("%" SCNu64 " %" SCNu32 " %" SCNu64 " %" SCNu32 " %" SCNu32, &now, &request.op,
                 &request.lbn, &request.sectors, &request.flags) == 5) {
        if (run(disk, now))
            return 1;
        if (traxtent_submit(disk, now, &request))
            return failed(traxtent_error(disk));
        request.tag++;
    }
    if (run(disk, TRAXTENT_TIME_MAX) || traxtent_outstanding(disk))
        return failed("requests remain outstanding");
    traxtent_free(disk);
    return 0;
}
