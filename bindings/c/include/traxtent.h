/* A modelled disk for programs in C: times of a real drive, data that a power cut may lose.
 * Generated from bindings/c/src/lib.rs; a test says when it is out of date. */

#ifndef TRAXTENT_H
#define TRAXTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The result of a call. `traxtent_error` returns the message.
typedef enum traxtent_status {
  // Success.
  TRAXTENT_OK = 0,
  // The disk cannot serve the request, or an argument is invalid.
  TRAXTENT_INVALID = 1,
  // A sector cannot be read.
  TRAXTENT_UNREADABLE = 2,
  // The drive does not respond.
  TRAXTENT_GONE = 3,
  // Any other error.
  TRAXTENT_FAILED = 4,
} traxtent_status;

// A disk: data in memory, times of a drive.
typedef struct traxtent_disk traxtent_disk;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Creates a disk of zeros at rest. `drive` is the name of a built-in drive or the TOML text of a
// profile. On failure, returns null and writes as much of the reason as `room` bytes hold to
// `error`, which may be null. Release the disk with `traxtent_free`.
//
// # Safety
// `drive` is a C string; `error` is null or has `room` bytes.
struct traxtent_disk *traxtent_new(const char *drive, char *error, size_t room);

// Releases a disk and its data. Null is ignored.
//
// # Safety
// `disk` is null or comes from `traxtent_new`, and is not used any more.
void traxtent_free(struct traxtent_disk *disk);

// Returns the reason why the last unsuccessful call failed. The string is valid until the next
// call.
const char *traxtent_error(const struct traxtent_disk *disk);

// Returns the number of logical sectors of the disk.
uint64_t traxtent_sectors(const struct traxtent_disk *disk);

// Returns the size of a logical sector in bytes.
uint32_t traxtent_sector_bytes(const struct traxtent_disk *disk);

// Returns the time of the disk's clock, in picoseconds.
uint64_t traxtent_now(const struct traxtent_disk *disk);

// Advances the disk's clock.
void traxtent_sleep(struct traxtent_disk *disk, uint64_t picoseconds);

// Reads `sectors` sectors that start at `lbn`. `took`, if it is not null, receives the time.
//
// # Safety
// `into` has room for the sectors.
enum traxtent_status traxtent_read(struct traxtent_disk *disk,
                                   uint64_t lbn,
                                   uint32_t sectors,
                                   uint8_t *into,
                                   uint64_t *took);

// Writes `sectors` sectors that start at `lbn`. With `fua` they are durable at completion.
// Otherwise they may be lost until the next `traxtent_flush`, if the drive has a write-back cache.
//
// # Safety
// `data` has that many sectors.
enum traxtent_status traxtent_write(struct traxtent_disk *disk,
                                    uint64_t lbn,
                                    uint32_t sectors,
                                    const uint8_t *data,
                                    bool fua,
                                    uint64_t *took);

// Makes all previous writes durable.
enum traxtent_status traxtent_flush(struct traxtent_disk *disk, uint64_t *took);

// Discards sectors (TRIM); their content afterwards depends on the drive.
enum traxtent_status traxtent_trim(struct traxtent_disk *disk,
                                   uint64_t lbn,
                                   uint32_t sectors,
                                   uint64_t *took);

// Writes zeros to sectors.
enum traxtent_status traxtent_write_zeroes(struct traxtent_disk *disk,
                                           uint64_t lbn,
                                           uint32_t sectors,
                                           uint64_t *took);

// Cuts the power and restores it. `seed` decides what remains of the data that were not durable.
enum traxtent_status traxtent_power_cut(struct traxtent_disk *disk, uint64_t seed);

// Injects a fault now, such as `"latent-error,lbn=1000,sectors=8"`.
//
// # Safety
// `fault` must be a C string.
enum traxtent_status traxtent_fault(struct traxtent_disk *disk, const char *fault);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TRAXTENT_H */
