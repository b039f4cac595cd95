#!/bin/bash
# Measures the benefit of concurrent requests to members: a RAID-5 on four emulated drives, as block devices, with
# io_uring and without (kernel.io_uring_disabled). Prints fio's mean latency in milliseconds for two runs of each.
#
# Usage: TRAXTENT=target/release/traxtent xtask/side-by-side.sh
#
# Needs root, nbdfuse, losetup, fio with nbd, and jq.
set -euo pipefail
traxtent=$(realpath "${TRAXTENT:-target/release/traxtent}")
folder=$(mktemp -d)
loops=() served=()
clean_up() {
    sysctl --quiet --write kernel.io_uring_disabled=0
    for loop in "${loops[@]}"; do losetup --detach "$loop"; done
    for shown in "$folder"/shown-*; do fusermount3 -u -q "$shown" || true; done
    kill "${served[@]}" 2> /dev/null || true
    wait
    rm -r "$folder"
}
trap clean_up EXIT
wait_for() { for _ in $(seq 100); do [ -s "$1" ] || [ -S "$1" ] && return; sleep 0.1; done; echo "no $1" >&2; exit 1; }

for number in 0 1 2 3; do
    "$traxtent" serve --socket "$folder/socket-$number" maxtor10k5 > /dev/null 2>&1 &
    served+=($!)
    wait_for "$folder/socket-$number"
    mkdir "$folder/shown-$number"
    nbdfuse "$folder/shown-$number" --unix "$folder/socket-$number" &
    wait_for "$folder/shown-$number/nbd"
    loops+=("$(losetup --find --show --direct-io=on "$folder/shown-$number/nbd")")
done
"$traxtent" volume create --trust-map --level raid-5 --chunk 64K "${loops[@]}"

for disabled in 0 2 0 2; do
    sysctl --quiet --write kernel.io_uring_disabled=$disabled
    for work in "randwrite 4k" "randwrite 64k" "randread 256k"; do
        read -r rw bytes <<< "$work"
        "$traxtent" volume serve --trust-map "${loops[@]}" -- sh -c 'exec fio --name=members --ioengine=nbd --uri="$uri" "$@"' fio \
            --rw="$rw" --bs="$bytes" --iodepth=1 --size=2g --runtime=8 --time_based --randseed=1 \
            --output-format=json --output="$folder/fio.json" > /dev/null
        mean=$(sed -n '/^{/,$p' "$folder/fio.json" | jq '[.jobs[0].read, .jobs[0].write][] | select(.total_ios > 0) | .clat_ns.mean / 1e4 | round / 100')
        echo "io_uring_disabled=$disabled $work: $mean ms"
    done
done
