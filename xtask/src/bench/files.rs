//! Files on an ext4 file system of the running kernel, on a served drive in real time: requests of
//! whole tracks compared with the kernel's own.

mod figures;
mod jobs;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use super::nbd::Bench;
use super::request_log;
use crate::shell;
use figures::{Figures, Tracks};
use jobs::{GROUPS, Group, Image, Job, ReadAhead};

/// The options of the benchmark.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Drive to serve; its logical sectors must be 512 bytes
    #[arg(long, default_value = "atlas10k")]
    drive: String,
    /// How often each job runs
    #[arg(long, default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Directory for the images, on a file system that allows files of the drive's size, such as
    /// tmpfs [default: below the target directory]
    #[arg(long, value_name = "DIR")]
    images: Option<PathBuf>,
    /// Run only the groups whose names contain this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// The programs that the benchmark needs.
const PROGRAMS: [&str; 8] = [
    "bash",
    "chrt",
    "cmp",
    "losetup",
    "mkfs.ext4",
    "partx",
    "sfdisk",
    "shuf",
];

/// The largest size of the partition in sectors of 512 bytes: 16 GiB.
const PARTITION_SECTORS_MAX: u64 = 32 << 20;
/// The first sector of the partition.
const PARTITION_START: u64 = 2048;
/// The size of an aged partition in sectors of 512 bytes: 8 GiB.
const AGED_SECTORS: u64 = 16 << 20;
/// The number of large files of the aged file system that are read and moved.
const AGED_FILES: usize = 8;

pub(super) fn run(seed: u64, options: &Options) -> Result<ExitCode> {
    ensure!(shell::is_root(), "loop devices and mounts need root");
    let Some(bench) = Bench::build("bench-files", seed, &PROGRAMS)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let mut bench = FileBench::new(bench, seed, options)?;
    println!(
        "drive   {}, outermost track of {} KiB\nrounds  {}\n",
        options.drive,
        bench.tracks.first_bytes() >> 10,
        options.rounds
    );
    let is_chosen = |group: &&Group| {
        let only = options.only.as_ref();
        only.is_none_or(|text| group.name.contains(text))
    };
    let groups: Vec<&Group> = GROUPS.iter().filter(is_chosen).collect();
    ensure!(
        !groups.is_empty(),
        "--only: no group has this text in its name"
    );
    for group in groups {
        bench.group(group)?;
    }
    for image in &bench.images {
        fs::remove_file(bench.image(*image))?;
    }
    match bench.untrustworthy {
        0 => println!("All receipts were trustworthy."),
        count => println!("{count} of {} receipts were not trustworthy.", bench.runs),
    }
    Ok(ExitCode::SUCCESS)
}

struct FileBench<'a> {
    bench: Bench,
    log: PathBuf,
    receipt: PathBuf,
    seed: u64,
    options: &'a Options,
    tracks: Tracks,
    image_folder: PathBuf,
    /// The images that have been made.
    images: Vec<Image>,
    runs: u32,
    untrustworthy: u32,
}

/// A finished run: its duration, and what the log of its requests shows.
struct Run {
    seconds: f64,
    figures: Figures,
}

impl<'a> FileBench<'a> {
    fn new(bench: Bench, seed: u64, options: &'a Options) -> Result<FileBench<'a>> {
        let mut map = Command::new(&bench.traxtent);
        map.args(["map", &options.drive, "--format", "csv"]);
        let tracks = Tracks::parse(&shell::stdout_of(&mut map)?)?;
        for folder in ["fuse", "mnt"] {
            fs::create_dir_all(bench.folder.join(folder))?;
        }
        let image_folder = match &options.images {
            Some(folder) => std::path::absolute(folder)?,
            None => bench.folder.clone(),
        };
        fs::create_dir_all(&image_folder)?;
        Ok(FileBench {
            log: bench.folder.join("requests.csv"),
            receipt: bench.folder.join("receipt.json"),
            image_folder,
            bench,
            seed,
            options,
            tracks,
            images: Vec::new(),
            runs: 0,
            untrustworthy: 0,
        })
    }

    /// Runs the jobs of a group in turns, and prints their table.
    fn group(&mut self, group: &Group) -> Result<()> {
        self.make(group.image)?;
        let mut runs: Vec<Vec<Run>> = group.jobs.iter().map(|_| Vec::new()).collect();
        let parts = group
            .jobs
            .chunk_by(|a, b| a.after_realign == b.after_realign);
        let mut done = 0;
        for part in parts {
            if part[0].after_realign {
                self.realign(group)?;
            }
            for _ in 0..self.options.rounds {
                for (job, runs) in part.iter().zip(&mut runs[done..]) {
                    runs.push(self.run_job(group.image, job)?);
                }
            }
            done += part.len();
        }
        print!("{}", figures::table(group, &runs));
        Ok(())
    }

    /// Makes the image of a drive with the files of a group, unless it is there.
    fn make(&mut self, image: Image) -> Result<()> {
        if self.images.contains(&image) {
            return Ok(());
        }
        let room = self.tracks.end - PARTITION_START - PARTITION_START;
        let sectors = match image {
            Image::Aged => AGED_SECTORS.min(room),
            Image::Contiguous | Image::InPieces => PARTITION_SECTORS_MAX.min(room),
        };
        let script = format!(
            "set -e\n\
             rm --force \"$image\"\n\
             truncate --size={bytes} \"$image\"\n\
             device=$(losetup --find --show \"$image\")\n\
             trap 'cd \"$folder\"; umount mnt; partx --delete \"$device\"; losetup --detach \"$device\"' EXIT\n\
             echo 'start={PARTITION_START}, size={sectors}' | sfdisk --quiet --no-reread --no-tell-kernel --label=dos \"$device\"\n\
             partx --add \"$device\"\n\
             mkfs.ext4 -q -F \"${{device}}p1\"\n\
             mount -o noatime \"${{device}}p1\" mnt\n\
             cd mnt\n\
             {files}\n\
             sync --file-system .\n",
            bytes = self.tracks.end * 512,
            files = image.creation_script(),
        );
        let mut bash = Command::new("bash");
        bash.arg(self.write_script("make.sh", &script)?);
        bash.current_dir(&self.bench.folder);
        bash.env("image", self.image(image));
        bash.env("folder", &self.bench.folder)
            .env("seed", self.seed.to_string());
        bash.env("count", AGED_FILES.to_string());
        if image == Image::Aged {
            bash.env("age", self.aging_program()?);
        }
        shell::run(&mut bash).with_context(|| image.image_name())?;
        self.images.push(image);
        Ok(())
    }

    /// The path of an image.
    fn image(&self, image: Image) -> PathBuf {
        self.image_folder.join(image.image_name())
    }

    /// Writes a script of bash; returns its path.
    fn write_script(&self, name: &str, script: &str) -> Result<PathBuf> {
        let path = self.bench.folder.join(name);
        fs::write(&path, script)?;
        Ok(path)
    }

    /// Builds the program that ages a file system; returns its path.
    fn aging_program(&self) -> Result<PathBuf> {
        let mut build = shell::cargo();
        build.args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "traxtent-file",
        ]);
        shell::run(build.args(["--example", "age"]))?;
        Ok(shell::target_dir().join("release/examples/age"))
    }

    /// Moves the files of a group onto whole tracks, on the served drive. Prints how many of their
    /// bytes are on whole tracks, and what it costs.
    fn realign(&mut self, group: &Group) -> Result<()> {
        let line = format!(
            "\"$traxtent\" file realign {} --map \"$map\" --trust-map --quiet --json \
             >\"$folder/realigned.json\"; test $? -le 1 && sync --file-system .",
            group.realigned
        );
        let job = Job {
            label: "realign",
            read_ahead: ReadAhead::Kib(128),
            line: &line,
            after_realign: false,
        };
        let run = self.run(group.image, &job, "rw,noinit_itable")?;
        let rows = fs::read_to_string(self.bench.folder.join("realigned.json"))?;
        let rows: Vec<serde_json::Value> = serde_json::from_str(&rows)?;
        let values = |path: &str| -> Vec<u64> {
            let value = |row: &serde_json::Value| row.pointer(path)?.as_u64();
            rows.iter().filter_map(value).collect()
        };
        let sum = |path: &str| values(path).iter().sum::<u64>();
        let share = |when: &str| {
            let whole = sum(&format!("/{when}/whole_bytes")) as f64;
            100.0 * whole / sum(&format!("/{when}/bytes")) as f64
        };
        println!(
            "{}: {} files of {} MiB in total, {:.1} % on whole tracks before, {:.1} % after; {} MiB moved in \
             {:.1} s, at most {} MiB allocated in addition",
            group.name,
            rows.len(),
            sum("/before/bytes") >> 20,
            share("before"),
            share("after"),
            sum("/moved_bytes") >> 20,
            run.seconds,
            values("/extra_bytes").iter().max().unwrap_or(&0) >> 20,
        );
        Ok(())
    }

    fn run_job(&mut self, image: Image, job: &Job<'_>) -> Result<Run> {
        self.run(image, job, "ro,noload")
    }

    /// Serves the drive, mounts its file system, and runs a job. The drive's buffer and the page
    /// cache are empty at the start, because each run has a server and a mount of its own.
    fn run(&mut self, image: Image, job: &Job<'_>, mount: &str) -> Result<Run> {
        let read_ahead_kib = match job.read_ahead {
            ReadAhead::Kib(kib) => kib,
            ReadAhead::Track => self.tracks.first_bytes() >> 10,
        };
        // A read of the first sector, which nothing else reads alone, marks in the log where the
        // job begins and ends.
        let script = format!(
            "set -e\n\
             partx --add \"$device\"\n\
             trap 'cd \"$folder\"; umount mnt; partx --delete \"$device\"' EXIT\n\
             mount -o noatime,{mount} \"${{device}}p1\" mnt\n\
             echo {read_ahead_kib} >\"/sys/block/${{device#/dev/}}/queue/read_ahead_kb\"\n\
             mark() {{ dd if=\"$device\" of=/dev/null bs=512 count=1 iflag=direct status=none; }}\n\
             cd mnt\n\
             mark\n\
             start=$(date +%s%N)\n\
             chrt --fifo 10 bash -c \"$job\"\n\
             end=$(date +%s%N)\n\
             mark\n\
             echo $((end - start))\n"
        );
        let mut serve = Command::new("chrt");
        serve.args(["--fifo", "20"]).arg(&self.bench.traxtent);
        serve.args(["serve", &self.options.drive, "--device", "--fuse", "fuse"]);
        serve.arg("--file").arg(self.image(image));
        serve
            .arg("--log")
            .arg(&self.log)
            .arg("--receipt")
            .arg(&self.receipt);
        serve.args(["--", "chrt", "--other", "0", "bash"]);
        serve.arg(self.write_script("run.sh", &script)?);
        serve.env("job", job.line).env("folder", &self.bench.folder);
        serve.env("map", &self.options.drive);
        serve.env("traxtent", &self.bench.traxtent);
        let printed = shell::stdout_of(serve.current_dir(&self.bench.folder));
        let printed = printed.with_context(|| job.label.to_owned())?;
        self.runs += 1;
        let receipt: serde_json::Value = serde_json::from_str(&fs::read_to_string(&self.receipt)?)?;
        self.untrustworthy += u32::from(receipt["verdict"] != "trustworthy");
        let nanoseconds = printed
            .lines()
            .find_map(|line| line.trim().parse::<f64>().ok());
        let requests = request_log::read(&self.log)?;
        let marks: Vec<usize> = (0..requests.len())
            .filter(|&i| requests[i].is_read && (requests[i].lbn, requests[i].sectors) == (0, 1))
            .collect();
        let [begin, end] = marks[..] else {
            bail!(
                "{} has {} marks instead of 2",
                self.log.display(),
                marks.len()
            );
        };
        Ok(Run {
            seconds: nanoseconds.context("the job printed no duration")? / 1e9,
            figures: Figures::of(&requests[begin + 1..end], &self.tracks),
        })
    }
}
