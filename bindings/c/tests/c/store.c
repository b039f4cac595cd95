/* Disks in files: `store STEP DRIVE PATH` performs one step, and prints the result. */
#define _XOPEN_SOURCE 600
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include "traxtent.h"

static uint8_t sector[4096], found[4096];
static char why[300];

/* Prints the message of an expected error. The program then succeeds. */
static int print_error(const char *message)
{
    printf("%s\n", message);
    return 0;
}

static int failed(const char *message)
{
    fprintf(stderr, "%s\n", message);
    return 1;
}

static traxtent_status fill(traxtent_disk *disk, uint64_t lbn, int byte)
{
    memset(sector, byte, sizeof sector);
    return traxtent_write(disk, lbn, 1, sector, false, NULL);
}

/* Writes LBN 5 durably and LBN 6 to the drive's cache, and leaves a write of LBN 7 outstanding. */
static int fill_three(traxtent_disk *disk)
{
    traxtent_request request = {.op = TRAXTENT_WRITE, .lbn = 7, .sectors = 1, .data = sector};
    if (fill(disk, 5, 5) || traxtent_flush(disk, NULL) || fill(disk, 6, 6))
        return 1;
    memset(sector, 7, sizeof sector);
    return traxtent_submit(disk, traxtent_now(disk), &request);
}

/* Limits the size of files to `bytes`. */
static void limit(rlim_t bytes)
{
    struct rlimit most = {bytes, bytes};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &most);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return failed("usage: store STEP DRIVE PATH");
    const char *step = argv[1], *drive = argv[2], *path = argv[3];
    int creates = !strncmp(step, "create", 6);
    if (!strcmp(step, "create-limited"))
        limit(1 << 20);
    traxtent_disk *disk = creates ? traxtent_create(drive, path, why, sizeof why)
                                : traxtent_open(drive, path, why, sizeof why);
    if (!disk)
        return print_error(why);
    if (!strcmp(step, "create-close")) {
        if (fill_three(disk) || traxtent_close(disk, why, sizeof why))
            return failed(why);
    } else if (!strcmp(step, "create-free")) {
        if (fill_three(disk))
            return failed(traxtent_error(disk));
        traxtent_free(disk);
    } else if (!strcmp(step, "open-read")) {
        for (int lbn = 5; lbn < 8; lbn++) {
            if (traxtent_read(disk, lbn, 1, found, NULL))
                return failed(traxtent_error(disk));
            printf("%d", found[0]);
        }
        if (traxtent_close(disk, why, sizeof why))
            return failed(why);
    } else if (!strcmp(step, "open-twice")) {
        if (traxtent_open(drive, path, why, sizeof why))
            return failed("two disks use one file");
        traxtent_free(disk);
        return print_error(why);
    } else if (!strcmp(step, "open-limited")) {
        limit(0);
        if (fill(disk, 5, 9))
            return failed(traxtent_error(disk));
        traxtent_status flushed = traxtent_flush(disk, NULL);
        printf("flush: %d %s\n", flushed, traxtent_error(disk));
        if (traxtent_fetch(disk, 5, 1, found) || found[0] != 9)
            return failed("the data cannot be read, or is wrong");
        printf("close: %d ", traxtent_close(disk, why, sizeof why));
        return print_error(why);
    } else if (!strcmp(step, "open-zero")) {
        if (traxtent_write_zeroes(disk, 5, 1, NULL) || traxtent_close(disk, why, sizeof why))
            return failed(why);
    } else {
        return failed("no such step");
    }
    return 0;
}
