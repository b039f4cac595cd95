/* Does a log that flushes each record survive a power cut? */
#include <stdio.h>
#include <string.h>
#include "traxtent.h"

int main(void)
{
    char why[200];
    traxtent_disk *disk = traxtent_new("generic-20tb", why, sizeof why);
    if (!disk)
        return fprintf(stderr, "%s\n", why), 1;

    uint8_t record[512], found[512];
    uint64_t took;
    for (int n = 0; n < 100; n++) {
        memset(record, n, sizeof record);
        if (traxtent_write(disk, n, 1, record, false, NULL) || traxtent_flush(disk, &took))
            return fprintf(stderr, "%s\n", traxtent_error(disk)), 1;
    }
    traxtent_power_cut(disk, 7);

    for (int n = 0; n < 100; n++)
        if (traxtent_read(disk, n, 1, found, NULL) || found[0] != n)
            return fprintf(stderr, "record %d is lost\n", n), 1;
    printf("all there; a flush takes %.1f ms\n", took / 1e9);
    traxtent_free(disk);
    return 0;
}
