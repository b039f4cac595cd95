/* Copies a file to standard output, track by track. */
#include <stdio.h>
#include "traxtent.h"

int main(int count, char **words)
{
    if (count != 3)
        return fprintf(stderr, "usage: tracks FILE MAP\n"), 2;
    char why[200];
    traxtent_track_reader *reader = traxtent_tracks_open(words[1], words[2], 4, why, sizeof why);
    if (!reader)
        return fprintf(stderr, "%s\n", why), 1;

    const uint8_t *data;
    size_t length;
    unsigned requests = 0;
    traxtent_status status;
    while (!(status = traxtent_tracks_next(reader, &data, &length)) && length) {
        if (fwrite(data, 1, length, stdout) != length) {
            perror("standard output");
            traxtent_tracks_close(reader);
            return 1;
        }
        requests++;
    }
    if (status)
        fprintf(stderr, "%s: %s\n", words[1], traxtent_tracks_error(reader));
    else
        fprintf(stderr, "%u requests\n", requests);
    traxtent_tracks_close(reader);
    return status != TRAXTENT_OK;
}
