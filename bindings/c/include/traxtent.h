/* A modelled disk for programs in C: times of a real drive, data that a power cut may lose.
 * Generated from bindings/c/src/lib.rs; a test says when it is out of date. */

#ifndef TRAXTENT_H
#define TRAXTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// How a call ended. `traxtent_error` has the words.
typedef enum traxtent_status {
  // Well.
  TRAXTENT_OK = 0,
  // The request, or an argument, is one that the disk cannot serve.
  TRAXTENT_INVALID = 1,
  // A sector cannot be read.
  TRAXTENT_UNREADABLE = 2,
  // The drive does not answer.
  TRAXTENT_GONE = 3,
  // Something else.
  TRAXTENT_FAILED = 4,
} traxtent_status;

// A disk: data in memory, times of a drive.
typedef struct traxtent_disk traxtent_disk;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// A disk of zeros at rest, of the built-in drive of that name, or of the profile whose TOML text
// this is. Returns null if there is none, and then as much of the reason as `room` bytes hold in
// `error`, which may be null. To be given to `traxtent_free`.
//
// # Safety
// `drive` is a C string; `error` is null or has `room` bytes.
struct traxtent_disk *traxtent_new(const char *drive, char *error, size_t room);

// Gives a disk and its data up. Null is none.
//
// # Safety
// `disk` is null or comes from `traxtent_new`, and is not used any more.
void traxtent_free(struct traxtent_disk *disk);

// Why the last call that did not end well did not. Lives until the next call.
const char *traxtent_error(const struct traxtent_disk *disk);

// How many logical sectors the disk has.
uint64_t traxtent_sectors(const struct traxtent_disk *disk);

// Bytes of a logical sector.
uint32_t traxtent_sector_bytes(const struct traxtent_disk *disk);

// The disk's clock, in picoseconds.
uint64_t traxtent_now(const struct traxtent_disk *disk);

// Lets the disk's clock run on.
void traxtent_sleep(struct traxtent_disk *disk, uint64_t picoseconds);

// Reads `sectors` from `lbn` on. `took`, if it is not null, receives the time.
//
// # Safety
// `into` has room for the sectors.
enum traxtent_status traxtent_read(struct traxtent_disk *disk,
                                   uint64_t lbn,
                                   uint32_t sectors,
                                   uint8_t *into,
                                   uint64_t *took);

// Writes `sectors` from `lbn` on. With `fua` they are durable then; else they may be lost until
// the next `traxtent_flush`, if the drive has a write-back cache.
//
// # Safety
// `data` are as many sectors.
enum traxtent_status traxtent_write(struct traxtent_disk *disk,
                                    uint64_t lbn,
                                    uint32_t sectors,
                                    const uint8_t *data,
                                    bool fua,
                                    uint64_t *took);

// Makes all that was written before durable.
enum traxtent_status traxtent_flush(struct traxtent_disk *disk, uint64_t *took);

// Gives sectors up (TRIM); what then stands there is the drive's matter.
enum traxtent_status traxtent_trim(struct traxtent_disk *disk,
                                   uint64_t lbn,
                                   uint32_t sectors,
                                   uint64_t *took);

// Makes sectors zero.
enum traxtent_status traxtent_write_zeroes(struct traxtent_disk *disk,
                                           uint64_t lbn,
                                           uint32_t sectors,
                                           uint64_t *took);

// Takes the power away and gives it back. `seed` decides what is left of what was not durable.
enum traxtent_status traxtent_power_cut(struct traxtent_disk *disk, uint64_t seed);

// Lets a fault happen now, such as `"latent-error,lbn=1000,sectors=8"`.
//
// # Safety
// `fault` is a C string.
enum traxtent_status traxtent_fault(struct traxtent_disk *disk, const char *fault);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TRAXTENT_H */
