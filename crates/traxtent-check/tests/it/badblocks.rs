//! The list of bad blocks: whether the installed mke2fs accepts it, and what e2fsck reports
//! afterwards.

use std::fs;
use std::path::Path;
use std::process::Command;

use traxtent_check::plan::badblocks::{BadBlocks, FileSystemSpec, NoListError};
use traxtent_layout::Partition;
use traxtent_map::TrackMap;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile;
use traxtent_units::Lbn;

/// 1 MiB in LBNs of 512 bytes.
const MIB_LBNS: u64 = 2048;
/// The upper bound on the capacity of the drives tested: 4 TB, in LBNs of 512 bytes.
const LBNS_MAX: u64 = 4_000_000_000_000 / 512;

struct Drive {
    name: &'static str,
    map: TrackMap,
}

fn drives() -> impl Iterator<Item = Drive> {
    profile::builtin::names().filter_map(|name| {
        let profile = profile::builtin(name).unwrap();
        let map = TrackMap::from_sizes(Geometry::build(&profile.geometry).unwrap().track_sizes());
        (map.end().0 <= LBNS_MAX).then_some(Drive { name, map })
    })
}

fn partition(map: &TrackMap, start: u64, block_bytes: u32) -> Partition {
    let sectors = traxtent_layout::sectors_of_block(block_bytes, 512).unwrap();
    Partition::new(map.clone(), Lbn(start)..map.end(), sectors).unwrap()
}

fn run(program: &Path, arguments: &[String]) -> (bool, String) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let mut says = String::from_utf8_lossy(&output.stdout).into_owned();
    says += &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), says)
}

/// Creates the file system on a sparse image of full size, with the list if there is one. Checks
/// the file system with e2fsck, and its recorded bad blocks with dumpe2fs. Returns a line that
/// describes the list, or says why there is none.
fn make_and_check(drive: &Drive, start: u64, block_bytes: u32, folder: &Path) -> String {
    let [mke2fs, e2fsck, dumpe2fs] =
        ["mke2fs", "e2fsck", "dumpe2fs"].map(|name| testkit::tool(name).unwrap());
    let partition = partition(&drive.map, start, block_bytes);
    let spec = FileSystemSpec {
        block_bytes,
        inode_ratio: 16_384,
    };
    let image = folder.join("image").to_str().unwrap().to_owned();
    let list = folder.join("list").to_str().unwrap().to_owned();
    let plan = BadBlocks::plan(&partition, spec);
    let of = format!("{} from LBN {start}, blocks of {block_bytes}", drive.name);
    let mut arguments: Vec<String> = ["-q", "-F", "-t", "ext4"].map(str::to_owned).into();
    let (blocks, line) = match &plan {
        Ok(plan) => {
            fs::write(&list, plan.lines()).unwrap();
            arguments.extend(plan.arguments(&list));
            let line = format!(
                "{of}: {} of {} excluded blocks listed ({} under tables, {} too many), groups of {}, {} bytes per inode",
                plan.list.len(),
                plan.excluded,
                plan.under_tables,
                plan.too_many,
                plan.group_blocks,
                plan.inode_ratio()
            );
            assert!(
                partition.blocks().0 - plan.blocks <= plan.group_blocks,
                "{line}"
            );
            let outside = plan.under_tables + plan.too_many;
            assert_eq!(plan.list.len() as u64 + outside, plan.excluded, "{line}");
            (plan.blocks, line)
        }
        Err(why) => {
            arguments.extend(["-b".to_owned(), block_bytes.to_string()]);
            (partition.blocks().0, format!("{of}: no list, {why}"))
        }
    };
    arguments.extend([image.clone(), blocks.to_string()]);
    let file = fs::File::create(&image).unwrap();
    file.set_len(partition.blocks().0 * u64::from(block_bytes))
        .unwrap();
    let (good, says) = run(&mke2fs, &arguments);
    assert!(good && says.is_empty(), "{line}: {arguments:?}: {says}");
    let (good, says) = run(&e2fsck, &["-fn".to_owned(), image.clone()]);
    assert!(good, "{line}: {says}");
    if let Ok(plan) = &plan {
        let (_, bad) = run(&dumpe2fs, &["-b".to_owned(), image.clone()]);
        let bad = bad.lines().filter_map(|line| line.parse::<u64>().ok());
        assert!(bad.eq(plan.list.iter().copied()), "{line}");
    }
    fs::remove_file(&image).unwrap();
    line
}

/// On every built-in drive of up to 4 TB, at full size and with each block size: does mke2fs accept
/// the list, if there is one, without printing anything? Does e2fsck find no error, and does the
/// file system record exactly the listed blocks? Outside a soak run, all large drives but the first
/// are left out, and blocks smaller than 4096 bytes are tried only on small drives.
#[test]
fn every_drive() {
    for tool in ["mke2fs", "e2fsck", "dumpe2fs"] {
        testkit::tool!(tool);
    }
    let folder = tempfile::tempdir().unwrap();
    let more = testkit::repeats(1) > 1;
    // Drives of 512 GiB or more take most of the time. Outside a soak run, only the first of them
    // is tried.
    let mut large_drives = 0;
    for drive in drives() {
        let small = drive.map.end().0 < 1 << 25;
        let large = drive.map.end().0 >= 1 << 30;
        large_drives += u32::from(large);
        if large && large_drives > 1 && !more {
            continue;
        }
        for block_bytes in [4096, 2048, 1024] {
            if block_bytes == 4096 || small || more {
                println!(
                    "{}",
                    make_and_check(&drive, MIB_LBNS, block_bytes, folder.path())
                );
            }
        }
        // Partitions that begin at arbitrary LBNs.
        for n in 1..testkit::repeats(1) {
            let start = n * 1_000_003 % (drive.map.end().0 / 2);
            println!("{}", make_and_check(&drive, start, 4096, folder.path()));
        }
    }
}

/// Is a partition that cannot have a list refused with the reason?
#[test]
fn refusals() {
    let plan = |text: &str, block_bytes| {
        let map = TrackMap::read_csv(text.as_bytes()).unwrap();
        let whole = Partition::whole(map, block_bytes / 512).unwrap();
        let spec = FileSystemSpec {
            block_bytes,
            inode_ratio: 16_384,
        };
        BadBlocks::plan(&whole, spec).map(drop)
    };
    let even: String = (0..100).map(|n| format!("{},800\n", n * 800)).collect();
    let even = format!("first_lbn,sectors\n{even}");
    assert_eq!(plan(&even, 4096), Err(NoListError::NoneExcluded));
    assert_eq!(plan(&even, 512), Err(NoListError::BlockSize(512)));
    let short: String = (0..5000).map(|n| format!("{},9\n", n * 9)).collect();
    let short = format!("first_lbn,sectors\n{short}");
    assert!(matches!(
        plan(&short, 4096),
        Err(NoListError::TooManyExcluded { .. })
    ));
    // With blocks of 1024 bytes, the descriptors alone would fill a group.
    let large = "first_lbn,sectors\n0,2000000001\n2000000001,2000000001\n";
    assert!(matches!(plan(large, 1024), Err(NoListError::NoRoom { .. })));
}
