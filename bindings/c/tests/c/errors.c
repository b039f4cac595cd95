/* Names invalid drives, submits invalid requests, injects faults, and reaches the end of time.
 * Prints the status and the message of the calls tested. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "traxtent.h"

static traxtent_disk *disk;

static void report(const char *what, traxtent_status status)
{
    printf("%s: %d %s\n", what, status, status ? traxtent_error(disk) : "ok");
}

static void submit_at(uint64_t now, traxtent_request request)
{
    report("submit", traxtent_submit(disk, now, &request));
}

/* Submits a request with the given fields now. */
#define SUBMIT(...) submit_at(traxtent_now(disk), (traxtent_request){__VA_ARGS__})

static void poll_all(void)
{
    uint64_t wake;
    traxtent_completion done;
    while ((wake = traxtent_next_wakeup(disk)) != TRAXTENT_NEVER)
        while (traxtent_poll(disk, wake, &done)) {
            printf("tag %" PRIu64 ", ", done.tag);
            report("completion", done.status);
        }
}

/* Runs an event loop that polls at TRAXTENT_NEVER once nothing is outstanding. */
static void poll_until_idle(void)
{
    traxtent_completion done;
    while (traxtent_outstanding(disk))
        while (traxtent_poll(disk, traxtent_next_wakeup(disk), &done)) {
            printf("tag %" PRIu64 ", ", done.tag);
            report("completion", done.status);
        }
}

/* Polls at TRAXTENT_NEVER, and submits requests shortly before and at the end of time. */
static void reach_end_of_time(void)
{
    uint8_t sector[512];
    char why[200];
    disk = traxtent_new("atlas10k2", why, sizeof why);
    SUBMIT(.op = TRAXTENT_READ, .tag = 5, .sectors = 1);
    poll_until_idle();
    SUBMIT(.op = TRAXTENT_READ, .tag = 6, .lbn = 5000, .sectors = 1);
    poll_until_idle();
    printf("less than a second passed: %d\n", traxtent_now(disk) < UINT64_C(1000000000000));
    submit_at(TRAXTENT_TIME_MAX - 1000,
              (traxtent_request){.op = TRAXTENT_READ, .tag = 7, .lbn = 9000, .sectors = 1});
    printf("wakes by the end: %d\n", traxtent_next_wakeup(disk) <= TRAXTENT_TIME_MAX);
    poll_until_idle();
    submit_at(TRAXTENT_TIME_MAX,
              (traxtent_request){.op = TRAXTENT_READ, .tag = 8, .sectors = 1});
    poll_until_idle();
    report("read", traxtent_read(disk, 0, 1, sector, NULL));
    printf("now at the end: %d\n", traxtent_now(disk) == TRAXTENT_TIME_MAX);
    traxtent_free(disk);
}

/* Schedules faults, one of them in place of others, and refuses texts that are not scenarios. */
static void schedule_faults(void)
{
    uint8_t sector[512];
    char why[200];
    disk = traxtent_new("atlas10k2", why, sizeof why);
    report("schedule", traxtent_schedule_faults(disk, "faults = 5"));
    report("schedule", traxtent_schedule_faults(disk,
        "faults = [{at = \"0\", fault = \"latent-error\", lbn = 100000000, sectors = 1}]"));
    report("schedule", traxtent_schedule_faults(disk,
        "faults = [{at = \"1 s\", fault = \"latent-error\", lbn = 3000, sectors = 1}]"));
    report("schedule", traxtent_schedule_faults(disk,
        "faults = [{at = \"2 s\", fault = \"latent-error\", lbn = 4000, sectors = 1}]"));
    report("read before", traxtent_read(disk, 4000, 1, sector, NULL));
    traxtent_sleep(disk, UINT64_C(3000000000000));
    report("read after", traxtent_read(disk, 4000, 1, sector, NULL));
    report("read of a replaced fault", traxtent_read(disk, 3000, 1, sector, NULL));
    traxtent_free(disk);
}

int main(void)
{
    static uint8_t sector[512], found[512];
    char why[200];
    traxtent_completion done;

    disk = traxtent_new("atlas10", why, sizeof why);
    printf("%d %s\n", disk == NULL, why);
    disk = traxtent_new("/", why, sizeof why);
    printf("%d %s\n", disk == NULL, why);
    disk = traxtent_new("model = ", why, sizeof why);
    printf("%d %.32s\n", disk == NULL, why);
    disk = traxtent_new("atlas10k2", why, sizeof why);

    uint64_t end = traxtent_sectors(disk);
    SUBMIT(.op = 0);
    SUBMIT(.op = 6, .sectors = 1);
    SUBMIT(.op = TRAXTENT_READ, .sectors = 1, .flags = 2);
    SUBMIT(.op = TRAXTENT_READ, .sectors = 1, .flags = TRAXTENT_FUA);
    SUBMIT(.op = TRAXTENT_READ);
    SUBMIT(.op = TRAXTENT_FLUSH, .sectors = 1);
    SUBMIT(.op = TRAXTENT_WRITE, .sectors = 1);
    SUBMIT(.op = TRAXTENT_WRITE, .sectors = 2, .lbn = end - 1, .data = sector);
    SUBMIT(.op = TRAXTENT_WRITE, .sectors = 2, .lbn = UINT64_MAX, .data = sector);
    submit_at(UINT64_MAX, (traxtent_request){.op = TRAXTENT_READ, .sectors = 1});
    report("read", traxtent_read(disk, 0, 1, NULL, NULL));
    report("read", traxtent_read(disk, end, 1, found, NULL));
    report("write", traxtent_write(disk, 0, 1, NULL, false, NULL));
    report("fetch", traxtent_fetch(disk, end, 1, found));
    printf("nothing outstanding: %d, nothing due: %d, nothing complete: %d\n",
           traxtent_outstanding(disk) == 0, traxtent_next_wakeup(disk) == TRAXTENT_NEVER,
           !traxtent_poll(disk, 0, &done));

    /* The data belongs to the caller again once the request is submitted. */
    memset(sector, 7, sizeof sector);
    SUBMIT(.op = TRAXTENT_WRITE, .tag = 1, .lbn = 8, .sectors = 1, .data = sector);
    memset(sector, 8, sizeof sector);
    poll_all();
    memset(sector, 7, sizeof sector);
    report("fetch", traxtent_fetch(disk, 8, 1, found));
    printf("the data as submitted: %d\n", memcmp(found, sector, sizeof found) == 0);

    traxtent_fault(disk, "latent-error,lbn=1000,sectors=1");
    SUBMIT(.op = TRAXTENT_READ, .tag = 2, .lbn = 1000, .sectors = 1);
    SUBMIT(.op = TRAXTENT_READ, .tag = 3, .lbn = 2000, .sectors = 1);
    /* A call that waits for its own command leaves the others to traxtent_poll. */
    traxtent_flush(disk, NULL);
    printf("outstanding: %" PRIu64 "\n", traxtent_outstanding(disk));
    poll_all();
    SUBMIT(.op = TRAXTENT_READ, .tag = 4, .sectors = 1);
    traxtent_power_cut(disk, 1);
    poll_all();
    SUBMIT(.op = TRAXTENT_WRITE, .lbn = 8, .sectors = 1, .data = sector);
    traxtent_free(disk);
    schedule_faults();
    reach_end_of_time();
    return 0;
}
