/* A modelled disk for programs in C, with the times of a real drive and data that a power cut may
 * lose, and a reader of files in whole tracks of a real drive.
 * Generated from bindings/c/src; a test fails when it is out of date.
 *
 * Two ways to use a disk:
 * - One command after another: traxtent_read, traxtent_write and similar functions return once the
 *   command has completed on the disk's own clock. They do not wait in real time.
 * - Several outstanding requests: traxtent_submit, traxtent_poll, traxtent_next_wakeup. The caller
 *   has the clock, virtual or real.
 * No function sleeps or reads a clock. Functions that access a file may wait for its storage.
 *
 * Files in whole tracks: traxtent_tracks_open, traxtent_tracks_next.
 *
 * Units: times are in picoseconds since the disk was created or opened. Positions (LBNs) and
 * lengths are in logical sectors of traxtent_sector_bytes bytes.
 *
 * Errors: a function that can fail returns a traxtent_status, and traxtent_error (for a reader,
 * traxtent_tracks_error) returns the message. A function that creates a disk or a reader returns
 * null if it fails, and writes the message to a buffer of the caller.
 *
 * Ownership: a disk belongs to the caller, who releases it with traxtent_close or traxtent_free.
 * The caller keeps ownership of all other arguments; they are not used after the call.
 *
 * Threads: no function on a disk starts a thread, and disks share no state. A reader has threads of
 * its own, which traxtent_tracks_close ends. The rules below apply to readers too, except that no
 * calls on one reader may overlap.
 * - Any thread may call a function on a disk, including traxtent_close and traxtent_free; the disk
 *   does not belong to the thread that created it.
 * - Calls on one disk must not overlap; the caller locks. Only functions that take a const disk may
 *   overlap with each other.
 * - Calls on different disks may overlap.
 * - No function may be called from a signal handler.
 *
 * Arguments that are pointers must not be null, unless the function says otherwise. */

#ifndef TRAXTENT_H
#define TRAXTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The latest time that a disk's clock reaches, in picoseconds: 106 days. A command that is not
// complete by then fails with `TRAXTENT_FAILED`.
#define TRAXTENT_TIME_MAX 9223372036854775807

// A flag of writes, including writes of zeros: force unit access. The write is durable when it
// completes.
#define TRAXTENT_FUA 1

// The result of `traxtent_next_wakeup` if no event is due. `traxtent_poll` at this time does not
// advance the clock.
#define TRAXTENT_NEVER 18446744073709551615ull

// The result of a call. `traxtent_error`, or `traxtent_tracks_error` for a reader, returns the
// message.
typedef enum traxtent_status {
  // Success.
  TRAXTENT_OK = 0,
  // The disk cannot serve the request, or an argument is invalid.
  TRAXTENT_INVALID = 1,
  // A sector cannot be read.
  TRAXTENT_UNREADABLE = 2,
  // The drive does not respond, or the power was cut during the request.
  TRAXTENT_GONE = 3,
  // Any other error.
  TRAXTENT_FAILED = 4,
  // The file system of the file that holds the data is full.
  TRAXTENT_NO_SPACE = 5,
} traxtent_status;

// The operation of a request.
typedef enum traxtent_op {
  // Reads sectors. Once the command has completed, `traxtent_fetch` copies the data.
  TRAXTENT_READ = 1,
  // Writes sectors.
  TRAXTENT_WRITE = 2,
  // Waits for all writes that were submitted before it, and makes durable those that had
  // completed before the submission. `lbn` and `sectors` must be zero.
  TRAXTENT_FLUSH = 3,
  // Discards sectors (TRIM); their content afterwards depends on the drive.
  TRAXTENT_TRIM = 4,
  // Writes zeros to sectors.
  TRAXTENT_WRITE_ZEROES = 5,
} traxtent_op;

// A modelled disk. Its data is in memory or in a file, and its times are those of a drive. Calls
// on one disk must not overlap, except calls of functions that take a const disk.
typedef struct traxtent_disk traxtent_disk;

// A file that is read in requests which each stay on one track. Calls on one reader must not
// overlap.
typedef struct traxtent_track_reader traxtent_track_reader;

// A request. Set unused fields to zero.
typedef struct traxtent_request {
  // The caller's identifier of the request. The completion returns it; the disk does not use it.
  uint64_t tag;
  // The first sector.
  uint64_t lbn;
  // The data to write, for `TRAXTENT_WRITE`.
  const uint8_t *data;
  // The number of sectors.
  uint32_t sectors;
  // One of `traxtent_op`.
  uint32_t op;
  // Zero or `TRAXTENT_FUA`.
  uint32_t flags;
} traxtent_request;

// The parts of a response time in picoseconds. Their sum is the response time.
typedef struct traxtent_breakdown {
  // Waiting for other requests, for read-ahead to stop, or for the end of a stall.
  uint64_t queue;
  // The controller's command and completion processing, the reselection of the bus, and delays
  // before the head moves.
  uint64_t overhead;
  // The first movement of the arm.
  uint64_t seek;
  // Settling before writes.
  uint64_t settle;
  // Track switches within the request, and the part of a head switch before it that exceeds
  // the seek.
  uint64_t head_switch;
  // Waiting for sectors to come under the head.
  uint64_t rotation;
  // Sectors passing under the head.
  uint64_t transfer;
  // The transfer on the bus, and waiting for the bus before it, except while any part above
  // takes place.
  uint64_t bus;
} traxtent_breakdown;

// A request that has completed.
typedef struct traxtent_completion {
  // The request's tag.
  uint64_t tag;
  // The time of submission in picoseconds.
  uint64_t submitted;
  // The time of completion in picoseconds.
  uint64_t completed;
  // The parts of the time from submission to completion.
  struct traxtent_breakdown breakdown;
  // The first sector.
  uint64_t lbn;
  // The number of sectors.
  uint32_t sectors;
  // The request's operation, one of `traxtent_op`.
  uint32_t op;
  // Success, or the reason for the failure.
  enum traxtent_status status;
} traxtent_completion;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Creates a zero-filled disk, at rest, with its data in memory. `drive` is the name of a built-in
// drive or the TOML text of a profile. On failure, returns null and writes the reason to `error`,
// truncated to `room` bytes. `error` may be null.
//
// The disk belongs to the caller. Release it with `traxtent_free`. The text of `drive` is copied.
//
// # Safety
// `drive` is a C string; `error` is null or has `room` bytes.
struct traxtent_disk *traxtent_new(const char *drive, char *error, size_t room);

// Creates a zero-filled disk, at rest, with its data in a new sparse file at `path`. Otherwise
// does the same as `traxtent_new`. Release the disk with `traxtent_close` or `traxtent_free`; both
// keep the file.
//
// The file is an image: byte 0 is the first byte of LBN 0. It is locked (`flock`) until the disk
// is released. It holds the data that is durable on the modelled disk. Each flush, and each write
// with force unit access, calls `fdatasync`.
//
// Also returns null if the file exists, cannot be created, or cannot be extended to the size of
// the disk. No new file is left behind.
//
// # Safety
// `drive` and `path` are C strings; `error` is null or has `room` bytes.
struct traxtent_disk *traxtent_create(const char *drive,
                                      const char *path,
                                      char *error,
                                      size_t room);

// Opens a disk, at rest, whose data is in the existing file at `path`: one that `traxtent_create`
// made, or any other image that is at least as long as the disk. Otherwise does the same as
// `traxtent_create`.
//
// Also returns null if the file is missing, too short, not a regular file, not writable, or in use
// by another disk or by `traxtent serve`. The file is then unchanged.
//
// # Safety
// `drive` and `path` are C strings; `error` is null or has `room` bytes.
struct traxtent_disk *traxtent_open(const char *drive, const char *path, char *error, size_t room);

// Shuts a disk down cleanly: completes the outstanding requests, flushes, and releases the disk.
// The results of outstanding requests are dropped. On failure, writes the reason to `error`,
// truncated to `room` bytes. `error` may be null. The disk is released in every case. Strings that
// `traxtent_error` returned for it become invalid.
//
// Returns `TRAXTENT_GONE` if the drive does not respond, and `TRAXTENT_NO_SPACE` or
// `TRAXTENT_FAILED` if the file does not accept the data. Data that was not durable is then lost.
//
// # Safety
// `disk` comes from a function that creates or opens one, and is not used afterwards; `error` is
// null or has `room` bytes.
enum traxtent_status traxtent_close(struct traxtent_disk *disk, char *error, size_t room);

// Releases a disk as if its power failed: data that is not durable is lost, as are outstanding
// requests. A file keeps the durable data. Null is ignored.
//
// # Safety
// `disk` is null or comes from a function that creates or opens one, and is not used afterwards.
void traxtent_free(struct traxtent_disk *disk);

// Returns the reason why the last unsuccessful call failed, or an empty string. The string belongs
// to the disk. It is valid until the next call of a function whose disk argument is not const.
const char *traxtent_error(const struct traxtent_disk *disk);

// Returns the number of logical sectors of the disk.
uint64_t traxtent_sectors(const struct traxtent_disk *disk);

// Returns the size of a logical sector in bytes.
uint32_t traxtent_sector_bytes(const struct traxtent_disk *disk);

// Returns the time of the disk's clock, in picoseconds.
uint64_t traxtent_now(const struct traxtent_disk *disk);

// Advances the disk's clock by a time in picoseconds, but not beyond `TRAXTENT_TIME_MAX`. Does not
// wait in real time.
void traxtent_sleep(struct traxtent_disk *disk, uint64_t picoseconds);

// Cuts the power and restores it. `seed` determines which parts of the data that was not durable
// survive. Outstanding requests fail with `TRAXTENT_GONE`. The call takes no time on the disk's
// clock.
//
// Returns `TRAXTENT_NO_SPACE` or `TRAXTENT_FAILED` if the file does not accept the data. The
// content is then as if the power had been cut when the error occurred.
enum traxtent_status traxtent_power_cut(struct traxtent_disk *disk, uint64_t seed);

// Injects a fault now, such as `"latent-error,lbn=1000,sectors=8"`. The text of `fault` is copied.
// After a power cut with a time (`for=`), requests fail with `TRAXTENT_GONE`, without taking any
// time, until it has passed: call `traxtent_sleep`.
//
// Returns `TRAXTENT_INVALID` if the text is not a fault, or names sectors that the disk does not
// have, and `TRAXTENT_FAILED` if a bad sector cannot be moved to a spare. Errors of a power cut
// are those of `traxtent_power_cut`.
//
// # Safety
// `fault` must be a C string.
enum traxtent_status traxtent_fault(struct traxtent_disk *disk, const char *fault);

// Schedules the faults of a scenario, in place of those that an earlier one scheduled. `scenario`
// is text in TOML, with times since the disk's clock was 0. The text is copied. A fault whose time
// has passed occurs as soon as the disk is used.
//
// Returns `TRAXTENT_INVALID` if the text is not a scenario, or names sectors that the disk does
// not have. The faults that were scheduled before then remain.
//
// # Safety
// `scenario` must be a C string.
enum traxtent_status traxtent_schedule_faults(struct traxtent_disk *disk, const char *scenario);

// Reads `sectors` sectors that start at `lbn`. `took`, if it is not null, receives the response
// time in picoseconds if the call succeeds.
//
// Returns `TRAXTENT_INVALID` if the disk does not have the sectors, or if `sectors` is zero,
// `TRAXTENT_UNREADABLE` if one of them cannot be read, `TRAXTENT_GONE` if the drive does not
// respond, and `TRAXTENT_FAILED` if the file cannot be read.
//
// # Safety
// `into` has room for the sectors.
enum traxtent_status traxtent_read(struct traxtent_disk *disk,
                                   uint64_t lbn,
                                   uint32_t sectors,
                                   uint8_t *into,
                                   uint64_t *took);

// Writes `sectors` sectors that start at `lbn`. With `fua` they are durable at completion.
// Otherwise a power cut before the next `traxtent_flush` may lose them, if the drive has a
// write-back cache. `took`, if it is not null, receives the response time in picoseconds if the
// call succeeds.
//
// Returns `TRAXTENT_INVALID` if the disk does not have the sectors, or if `sectors` is zero,
// `TRAXTENT_GONE` if the drive does not respond, and `TRAXTENT_NO_SPACE` or `TRAXTENT_FAILED` if
// the file does not accept the data.
//
// # Safety
// `data` has that many sectors.
enum traxtent_status traxtent_write(struct traxtent_disk *disk,
                                    uint64_t lbn,
                                    uint32_t sectors,
                                    const uint8_t *data,
                                    bool fua,
                                    uint64_t *took);

// Makes all previous writes durable. `took`, if it is not null, receives the response time in
// picoseconds if the call succeeds.
//
// Returns `TRAXTENT_GONE` if the drive does not respond, and `TRAXTENT_NO_SPACE` or
// `TRAXTENT_FAILED` if the file does not accept the data. Data that the file does not accept stays
// in the cache, and a later flush may succeed.
enum traxtent_status traxtent_flush(struct traxtent_disk *disk, uint64_t *took);

// Discards `sectors` sectors that start at `lbn` (TRIM). Their content afterwards depends on the
// drive. `took`, if it is not null, receives the response time in picoseconds, which is zero, if
// the call succeeds. Errors are those of `traxtent_write`.
enum traxtent_status traxtent_trim(struct traxtent_disk *disk,
                                   uint64_t lbn,
                                   uint32_t sectors,
                                   uint64_t *took);

// Writes zeros to `sectors` sectors that start at `lbn`, without force unit access. `took`, if it
// is not null, receives the response time in picoseconds if the call succeeds. Errors are those of
// `traxtent_write`.
enum traxtent_status traxtent_write_zeroes(struct traxtent_disk *disk,
                                           uint64_t lbn,
                                           uint32_t sectors,
                                           uint64_t *took);

// Submits a request at `now`, in picoseconds on a clock that is zero when the disk is created or
// opened. A time before `traxtent_now` counts as `traxtent_now`. The request and its data are
// copied, so the caller may reuse both after the call. Tags need not be unique. Every request
// enters the drive's queue immediately: keep at most the profile's `queue.depth` requests
// outstanding, as a host would.
//
// Returns `TRAXTENT_INVALID`, without any effect, if a field is invalid, the disk does not have
// the sectors, or `now` is after `TRAXTENT_TIME_MAX`. Other errors are in the completion.
//
// # Safety
// If the request is a write, its `data` has `sectors` sectors.
enum traxtent_status traxtent_submit(struct traxtent_disk *disk,
                                     uint64_t now,
                                     const struct traxtent_request *request);

// If a request has completed by `now`, in picoseconds, writes its completion to `completion` and
// returns true. Otherwise returns false and writes nothing. Completions are returned in order of
// time. The disk's clock advances to `now`, so do not poll at a time in the future. `now` is
// limited to the range from `traxtent_now` to `TRAXTENT_TIME_MAX`. `TRAXTENT_NEVER` counts as
// `traxtent_now`, so `traxtent_poll(disk, traxtent_next_wakeup(disk), &completion)` is safe even
// if no event is due.
//
// Requests that are not complete by `TRAXTENT_TIME_MAX` complete then, with `TRAXTENT_FAILED`.
//
// If the request failed, `completion->status` is not `TRAXTENT_OK`, and `traxtent_error` returns
// the reason.
//
// # Safety
// `completion` has room for a completion.
bool traxtent_poll(struct traxtent_disk *disk,
                   uint64_t now,
                   struct traxtent_completion *completion);

// Copies the data of `sectors` sectors that start at `lbn` to `into`. A read that completes at
// `traxtent_now` returns this data. Takes no time on the disk's clock. Call it after
// `traxtent_poll` has returned the read's completion, and before `traxtent_power_cut`.
//
// Returns `TRAXTENT_INVALID` if the disk does not have the sectors, or if `sectors` is zero, and
// `TRAXTENT_FAILED` if the storage of the data fails. The content of `into` is then undefined.
// Unreadable sectors are not reported here, but by the completion of the read.
//
// # Safety
// `into` has room for the sectors.
enum traxtent_status traxtent_fetch(struct traxtent_disk *disk,
                                    uint64_t lbn,
                                    uint32_t sectors,
                                    uint8_t *into);

// Returns the time of the disk's next event, in picoseconds, or `TRAXTENT_NEVER` if no event is
// due. No other result is after `TRAXTENT_TIME_MAX`. Call `traxtent_poll` at that time. It may
// return no completion, because drives also have internal events.
uint64_t traxtent_next_wakeup(const struct traxtent_disk *disk);

// Returns the number of submitted requests that `traxtent_poll` has not returned yet.
uint64_t traxtent_outstanding(const struct traxtent_disk *disk);

// Opens a file of a mounted ext4, XFS or Btrfs. The file system must lie in one piece on one
// drive. Usually needs root. `map` is the path of the drive's track map: a file that
// `traxtent probe` wrote, or a list of tracks that `traxtent map --format csv` printed, in sectors
// of 512 bytes. `ahead` tracks, from 1 to 256, are read before they are requested, in as many
// threads. On failure, returns null and writes the reason to `error`, truncated to `room` bytes.
// `error` may be null.
//
// The reader belongs to the caller. Release it with `traxtent_tracks_close`.
//
// # Safety
// `path` and `map` are C strings; `error` is null or has `room` bytes.
struct traxtent_track_reader *traxtent_tracks_open(const char *path,
                                                   const char *map,
                                                   uint32_t ahead,
                                                   char *error,
                                                   size_t room);

// Reads the next part of the file: as much as lies in one piece on one track. Holes read as zeros.
// Sets `data` and `length`; the data belongs to the reader, and is valid until the next call. At
// the end of the file, the length is 0 and `data` is null.
//
// Returns `TRAXTENT_UNREADABLE` if the drive cannot read the part, and `TRAXTENT_FAILED` for any
// other error. The next call then continues after this part.
//
// # Safety
// `data` and `length` can be written to.
enum traxtent_status traxtent_tracks_next(struct traxtent_track_reader *reader,
                                          const uint8_t **data,
                                          size_t *length);

// Returns the reason why the last unsuccessful call failed, or an empty string. The string belongs
// to the reader. It is valid until the next call of `traxtent_tracks_next`.
const char *traxtent_tracks_error(const struct traxtent_track_reader *reader);

// Closes a file, and releases the reader. Null is ignored.
//
// # Safety
// `reader` is null or comes from `traxtent_tracks_open`, and is not used afterwards.
void traxtent_tracks_close(struct traxtent_track_reader *reader);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TRAXTENT_H */
