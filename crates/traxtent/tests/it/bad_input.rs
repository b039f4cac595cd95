//! Bad input: one line with file, line, key, value and bound, and the right exit status.

use std::fs;

use testkit::shared_data;

use super::command::traxtent_in;

/// Returns a DiskSim system of a disk and a generator of requests. The disk has 11 cylinders, and
/// its only zone ends at cylinder `last`. `local` and `capacity` are the generator's probability of
/// local access and its storage capacity.
fn synthetic(last: u32, local: &str, capacity: u32) -> String {
    format!(
        "dm_disk D {{
Number of data surfaces = 1,
Number of cylinders = 11,
Block count = 1000,
Layout Model = dm_layout_g1 {{ LBN-to-PBN mapping scheme = 0, Sparing scheme used = 0,
Zones = [ dm_layout_g1_zone {{ First cylinder number = 0, Last cylinder number = {last}, Blocks per track = 100 }} ] }},
Mechanical Model = dm_mech_g1 {{ Seek type = constant, Constant seek time = 1, Rotation speed (in rpms) = 5400 }}
}}
instantiate [ d ] as D
disksim_synthio S {{
Number of I/O requests to generate = 5, Maximum time of trace generated = 1000.0,
Generators = [ disksim_synthgen {{
devices = [ d ],
Storage capacity per device = {capacity},
Blocking factor = 8,
Probability of local access = {local}, Probability of sequential access = 0, Probability of read access = 0,
Probability of time-critical request = 0, Probability of time-limited request = 0,
Time-limited think times = [ normal, 30.0, 100.0 ],
General inter-arrival times = [ exponential, 0.0, 25.0 ],
Sequential inter-arrival times = [ normal, 0.0, 0.0 ],
Local inter-arrival times = [ exponential, 0.0, 0.0 ],
Local distances = [ normal, 0.0, 40000.0 ],
Sizes = [ exponential, 0.0, 8.0 ] }} ]
}}
"
    )
}

/// Is a workload without a time limit refused, as in DiskSim, rather than one that ends at once?
#[test]
fn a_time_limit_is_required() {
    let folder = tempfile::tempdir().unwrap();
    let text = synthetic(10, "0.5", 1000);
    let text = text.replace(" Maximum time of trace generated = 1000.0,", "");
    fs::write(folder.path().join("s.parv"), text).unwrap();
    let answer = traxtent_in(folder.path(), &["sim", "disksim:s.parv"]);
    assert_eq!(answer.status, 2, "{}", answer.err);
    let says = "disksim_synthio has no \"Maximum time of trace generated\"";
    assert!(answer.err.contains(says), "{}", answer.err);
}

/// Does a note say why a workload ends with fewer requests than the file states, at its time limit
/// or because each generator counts a request that it has not issued? Is there none otherwise?
#[test]
fn workloads_that_end_early_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let text = synthetic(10, "0.5", 1000);
    let from = text.find("disksim_synthgen").unwrap();
    let generator = &text[from..text.rfind(']').unwrap()];
    let two = text.replace(generator, &format!("{generator}, {generator}"));
    let two = two + "disksim_pf P { Number of processors = 2, Process-Flow Time Scale = 1.0 }";
    let limited = text.replace("generated = 1000.0", "generated = 0.02");
    for (text, says) in [
        (&text, None),
        (
            &limited,
            Some(
                "ended at its time limit of 0.02 s (Maximum time of trace generated), before its 5 requests",
            ),
        ),
        (&two, Some("1 of the 5 requests were drawn but not issued")),
    ] {
        fs::write(folder.path().join("s.parv"), text).unwrap();
        let answer = traxtent_in(folder.path(), &["sim", "disksim:s.parv"]);
        assert_eq!(answer.status, 0, "{}", answer.err);
        let of_end = |note: &&str| note.contains("time limit") || note.contains("not issued");
        let notes: Vec<&str> = answer.err.lines().filter(of_end).collect();
        match says {
            Some(says) => assert!(
                matches!(notes[..], [one] if one.contains(says)),
                "{notes:?}"
            ),
            None => assert_eq!(notes, [""; 0]),
        }
    }
}

/// Does an error in a generator of a DiskSim file name the file, the line, the key and the value?
/// Is a capacity compared with the generator's own devices, even if it never issues a request?
#[test]
fn generators_have_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let simulated = |local: &str, capacity: u32| {
        let text = synthetic(10, local, capacity);
        fs::write(folder.path().join("s.parv"), text).unwrap();
        traxtent_in(folder.path(), &["sim", "disksim:s.parv"])
    };
    for (local, capacity, says) in [
        (
            "1.5",
            1000,
            "traxtent: s.parv:16: generator 0: Probability of local access = 1.5: expected 0 to 1",
        ),
        (
            "0.5",
            1_000_000,
            "traxtent: s.parv:14: generator 0: Storage capacity per device = 1000000: \
             expected at most 1100, the sectors of d",
        ),
        (
            "0.5",
            1101,
            "traxtent: s.parv:14: generator 0: Storage capacity per device = 1101: \
             expected at most 1100, the sectors of d",
        ),
    ] {
        let answer = simulated(local, capacity);
        assert_eq!(answer.status, 2, "{}", answer.err);
        let last = answer.err.lines().last().unwrap();
        assert!(last.starts_with(says), "{last}");
    }
    let answer = simulated("0.5", 1100);
    assert_eq!(answer.status, 0, "{}", answer.err);

    let systems = shared_data!("disksim");
    for (file, from, to, says) in [
        (
            "synthopen.parv",
            "= 17783240",
            "= 20000000",
            "246: generator 2: Storage capacity per device = 20000000: expected at most 17918387, \
             the sectors of disk2",
        ),
        (
            "synthopen.parv",
            "= [ disk0 ], \n     Block",
            "= [ disk0, disk2 ], \n     Block",
            "214: generator 0: Storage capacity per device = 17938986: expected at most 17918387, \
             the sectors of disk2",
        ),
        (
            "synthraid5.parv",
            "=  16448064",
            "=  16448065",
            "229: generator 0: Storage capacity per device = 16448065: expected at most 16448064, \
             the sectors of org0",
        ),
    ] {
        let text = fs::read_to_string(systems.join(file)).unwrap();
        assert!(text.contains(from), "{from}");
        let text = text.replace("source ", &format!("source {}/", systems.display()));
        fs::write(folder.path().join("s.parv"), text.replace(from, to)).unwrap();
        let answer = traxtent_in(folder.path(), &["sim", "disksim:s.parv"]);
        assert_eq!(answer.status, 2, "{}", answer.err);
        let last = answer.err.lines().last().unwrap();
        assert_eq!(last, format!("traxtent: s.parv:{says}"));
    }
}

/// Is there one clear warning if the zones of a DiskSim file end before the disk does, and none if
/// they end with it? DiskSim accepts such files.
#[test]
fn short_zones_are_mentioned() {
    let folder = tempfile::tempdir().unwrap();
    for (last, says) in [
        (10, None),
        (9, Some("cylinder 10 holds no blocks")),
        (8, Some("cylinders 9 to 10 hold no blocks")),
    ] {
        fs::write(folder.path().join("s.parv"), synthetic(last, "0", 800)).unwrap();
        let answer = traxtent_in(folder.path(), &["map", "disksim:s.parv"]);
        assert_eq!(answer.status, 0, "{}", answer.err);
        let lines = answer.err.lines();
        let found: Vec<&str> = lines
            .filter(|line| line.contains("the zones end"))
            .collect();
        assert_eq!(found.len(), usize::from(says.is_some()), "{}", answer.err);
        if let Some(says) = says {
            assert!(
                found[0].starts_with("traxtent: warning: s.parv:1: "),
                "{found:?}"
            );
            assert!(found[0].contains(says), "{found:?}");
        }
    }
}

/// Does the error for a file in a directory that refuses new files differ from that for a directory
/// that does not exist?
#[test]
fn directories_that_refuse_files() {
    let folder = tempfile::tempdir().unwrap();
    for (path, says) in [
        (
            "/proc/traxtent.csv",
            "/proc/traxtent.csv: cannot be created: its directory does not accept new files",
        ),
        (
            "none/log.csv",
            "none/log.csv: cannot be created: there is no directory none",
        ),
    ] {
        let words = ["sim", "instant", "random,count=1", "--log", path];
        let answer = traxtent_in(folder.path(), &words);
        assert_eq!(answer.status, 3, "{}", answer.err);
        assert_eq!(answer.err, format!("traxtent: {says}\n"));
    }
}

/// Is an output that exists or cannot be created refused before anything is calibrated?
#[test]
fn an_unusable_output_is_refused_first() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let text = "[geometry]\nsurfaces = 1\n";
    fs::write(at.join("mine.toml"), text).unwrap();
    fs::create_dir(at.join("dir")).unwrap();
    for (out, status, says) in [
        ("mine.toml", 2, "mine.toml: already exists; use --force"),
        ("none/new.toml", 3, "none/new.toml: cannot be created: "),
        ("dir", 3, "dir: "),
        ("-", 2, "/dev/stdout writes to standard output"),
    ] {
        let words = ["calibrate", "atlas10k", "absent.trace", "--out", out];
        let answer = traxtent_in(at, &words);
        assert_eq!(answer.status, status, "{}", answer.err);
        assert!(answer.err.contains(says), "{}", answer.err);
    }
    assert_eq!(fs::read_to_string(at.join("mine.toml")).unwrap(), text);
    assert_eq!(fs::read_dir(at).unwrap().count(), 2);
}

/// If a trace has requests for several devices but there is one drive, are the devices of the trace
/// named? Is `--drive` suggested only where it adds a drive?
#[test]
fn a_trace_of_several_devices() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("two.ascii"),
        "0.0 5 100 8 1\n1.0 5 200 8 1\n2.0 3 300 8 1\n",
    )
    .unwrap();
    let answer = traxtent_in(folder.path(), &["sim", "atlas10k", "two.ascii"]);
    assert_eq!(answer.status, 2, "{}", answer.err);
    let says = "two.ascii: request 3 is for device 3, those before it are for device 5, and there is only one drive";
    assert!(answer.err.contains(says), "{}", answer.err);
    let remedy = "(--drive adds a drive, --device selects a device)";
    assert!(answer.err.contains(remedy), "{}", answer.err);

    let log = "request,device,op,fua,lbn,sectors,issued_ms,submitted_ms,completed_ms,response_ms,\
        queue_ms,overhead_ms,seek_ms,settle_ms,head_switch_ms,rotation_ms,transfer_ms,bus_ms,served,\
        measured_ms\n\
        0,0,read,0,8,8,0,0,5,5,0,0,0,0,0,5,0,0,media,5\n\
        1,1,read,0,8,8,9,9,14,5,0,0,0,0,0,5,0,0,media,5\n";
    fs::write(folder.path().join("log.csv"), log).unwrap();
    for line in [
        &["sim", "two.ascii", "--drives", "atlas10k,cheetah15k7"][..],
        &["validate", "log.csv", "--drive", "atlas10k"],
        &["calibrate", "atlas10k", "log.csv", "--out", "new.toml"],
    ] {
        let answer = traxtent_in(folder.path(), line);
        assert_eq!(answer.status, 2, "{line:?}: {}", answer.err);
        let is_clear = answer.err.contains("(--device selects a device)");
        assert!(
            is_clear && !answer.err.contains("--drive "),
            "{line:?}: {}",
            answer.err
        );
    }
}

/// Do the errors for arrays, to which drives cannot be added, not suggest `--drive`, and is it
/// refused with them? Do errors name an array that is too small, the block of identical disks, and
/// that of a workload that cannot be set? Is a single disk without a workload told apart from a
/// file without one?
#[test]
fn arrays_and_single_disks_of_disksim() {
    let data = shared_data!("disksim");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("three.trace"), "0.0 3 100 8 1\n").unwrap();
    fs::write(folder.path().join("far.trace"), "0.0 0 16448060 8 1\n").unwrap();
    let target = |name: &str| format!("disksim:{}", data.join(name).display());
    let (raid, single) = (target("synthraid5.parv"), target("atlas10k.parv"));
    let ibm = target("3disks.parv#ibm");
    for (line, says) in [
        (
            &["sim", &raid, "three.trace"][..],
            "device 3 does not exist; there is only device 0 (--device selects a device)",
        ),
        (
            &["sim", &raid, "far.trace"],
            "far.trace: request 1: read of 8 sectors at LBN 16448060: the array org0 ends before \
             LBN 16448064",
        ),
        (
            &["convert", &raid],
            "has 9 drives, all of them HP_C3323A; append #HP_C3323A for the first, or # and the \
             name of one: disk0, disk1, disk2, disk3, disk4, disk5, disk6, disk7, disk8",
        ),
        (
            &["sim", &raid, "--set", "workload.read=1"],
            "synthraid5.parv:221: --set workload.read: only count can be set in DiskSim's \
             workload, and --seed sets the seed; change other parameters in the file's \
             disksim_synthio block",
        ),
        (
            &["sim", &raid, "three.trace", "--drive", "atlas10k"],
            "the parameters describe arrays, to which --drive cannot add a drive; omit it",
        ),
        (
            &["sim", &single, "three.trace", "--drive", &raid],
            "the parameters describe arrays, which --drive cannot add",
        ),
        (
            &["sim", &ibm],
            "a single disk of a file runs without the file's workload; omit #ibm, or give",
        ),
    ] {
        let answer = traxtent_in(folder.path(), &[line, &["--quiet"]].concat());
        assert_eq!(answer.status, 2, "{line:?}: {}", answer.err);
        assert!(answer.err.contains(says), "{line:?}: {}", answer.err);
    }
}

/// Is the error for a file that DiskSim parameters refer to, and that is missing, the same as that
/// for missing parameters, with the place of the reference?
#[test]
fn files_that_parameters_refer_to() {
    let data = shared_data!("disksim");
    let folder = tempfile::tempdir().unwrap();
    let files = ["parv", "diskspecs", "model", "seek"].map(|ending| format!("ibm18es.{ending}"));
    for file in files.iter().map(String::as_str).chain(["statdefs"]) {
        fs::copy(data.join(file), folder.path().join(file)).unwrap();
    }
    let line = ["sim", "disksim:ibm18es.parv", "random,count=9", "--quiet"];
    let run = || traxtent_in(folder.path(), &line);
    assert_eq!(run().status, 0, "{}", run().err);
    for missing in ["ibm18es.seek", "ibm18es.model", "ibm18es.parv"] {
        fs::remove_file(folder.path().join(missing)).unwrap();
        let answer = run();
        assert_eq!(answer.status, 3, "{missing}: {}", answer.err);
        let end = format!("{missing}: No such file or directory\n");
        assert!(answer.err.ends_with(&end), "{}", answer.err);
    }
}

/// Is each error in a file or on the command line reported in one line that says where it is?
#[test]
fn one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let profile = traxtent_model::profile::builtin::text("atlas10k").unwrap();
    let rpm = 1 + profile
        .lines()
        .position(|line| line.starts_with("rpm ="))
        .unwrap();
    let line = profile.lines().nth(rpm - 1).unwrap();
    let minimal = |size: &str, second: &str, more: &str| {
        format!(
            "{more}[geometry]\nsurfaces = 1\ncylinders = 10\n\
             [[geometry.zones]]\nfirst_cylinder = 0\nlast_cylinder = 4\nsectors_per_track = {size}\n\
             [[geometry.zones]]\nfirst_cylinder = {second}\nlast_cylinder = 9\nsectors_per_track = 50\n"
        )
    };
    let files = [
        ("bound.toml", profile.replacen(line, "rpm = -3.5", 1)),
        ("kind.toml", profile.replacen(line, "rpm = \"fast\"", 1)),
        (
            "key.toml",
            profile.replacen(line, &format!("{line}\nrmp = 1"), 1),
        ),
        ("cut.toml", profile[..profile.len() / 2].to_owned()),
        ("empty.toml", String::new()),
        (
            "tracks.map",
            "traxtent track map 1\nstate: complete\n".to_owned(),
        ),
        (
            "bad.trace",
            "1.0 0 0 8 1\n".repeat(99) + "2.0 0 100 eight 1\n",
        ),
        ("odd.trace", "this is\nno trace\n".to_owned()),
        (
            "beyond.trace",
            "1.0 0 0 8 1\n2.0 0 99999999999 8 1\n".to_owned(),
        ),
        ("none.trace", "1.0 0 0 0 1\n".to_owned()),
        ("nothing.trace", "1.0 0 0 8 1\n2.0 0 8 0 1\n".to_owned()),
        ("back.trace", "1.0 0 0 8 1\n0.5 0 8 8 1\n".to_owned()),
        (
            "w.toml",
            "kind = \"random\"\nsize = 8\ncuont = 5\n".to_owned(),
        ),
        (
            "cut.parv",
            "disksim_global Global {\nInit Seed = 42,\n".to_owned(),
        ),
        ("cut.trace", "R Hit 0 8 600.0 100.0\n".to_owned()),
        (
            "pauses.trace",
            "R Miss 0 8 600.0 100.0\nR Miss 800 8 700.0 100.0\n".to_owned(),
        ),
        ("recorded.trace", "1.0 0 0 8 1\n".to_owned()),
        ("curve.seek", "Seek distance, 1\n".to_owned()),
        ("layout.model", "dm_disk M {\n".to_owned()),
        (
            "old.parv",
            "Byte Order (Endian): Little\nInit Seed: 42\n".to_owned(),
        ),
        (
            "old.diskspecs",
            "disksim_disk D {\nNumber of data surfaces = 13 }\n".to_owned(),
        ),
        ("semicolon.toml", profile.replacen(line, "rpm = 7200;", 1)),
        ("log.parquet", "PAR1\u{15}\u{4}\u{15}".to_owned()),
        ("half.toml", minimal("100.5", "5", "")),
        ("overlap.toml", minimal("100", "0", "")),
        ("zero.toml", minimal("0", "5", "")),
        (
            "host.toml",
            minimal("100", "5", "[host]\nscheduler = \"sptf\"\n"),
        ),
        (
            "spare.toml",
            minimal(
                "100",
                "5",
                "[provenance]\n\"mechanics.rpm\" = \"assumed: x\"\n",
            ),
        ),
    ];
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, "1.0 0 0 8 1\n".repeat(1000).as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    fs::write(folder.path().join("cut.trace.gz"), &gzip[..gzip.len() / 2]).unwrap();

    let bound = format!("bound.toml:{rpm}: mechanics.rpm = -3.5");
    let cases: &[(&[&str], i32, &[&str])] = &[
        (&["sim", "bound.toml", "random"], 2, &[&bound, "must be"]),
        (
            &["sim", "kind.toml", "random"],
            2,
            &[&format!("kind.toml:{rpm}: "), "fast"],
        ),
        (
            &["sim", "key.toml", "random"],
            2,
            &[&format!("key.toml:{}: ", rpm + 1), "rmp"],
        ),
        (&["sim", "cut.toml", "random"], 2, &["cut.toml:"]),
        (&["map", "empty.toml"], 2, &["empty.toml:1: "]),
        (
            &["sim", "./tracks.map", "random"],
            2,
            &["tracks.map:1: is a track map"],
        ),
        (
            &["sim", "atlas10k", "bad.trace"],
            2,
            &["bad.trace:100: ", "eight"],
        ),
        (
            &["sim", "atlas10k", "odd.trace"],
            2,
            &["odd.trace", "this is"],
        ),
        (
            &["sim", "atlas10k", "beyond.trace"],
            2,
            &["beyond.trace", "99999999999", "ends before LBN"],
        ),
        (
            &["sim", "atlas10k", "none.trace"],
            2,
            &["none.trace:1: ", "the request has 0 sectors"],
        ),
        (
            &["sim", "atlas10k", "nothing.trace"],
            2,
            &["nothing.trace:2: ", "the request has 0 sectors"],
        ),
        (
            &["sim", "atlas10k", "back.trace"],
            2,
            &[
                "back.trace:2: ",
                "arrives 0.5 ms before an earlier one in the file",
                "sort the trace",
                "--replay closed:N",
            ],
        ),
        (&["sim", "atlas10k", "cut.trace.gz"], 2, &["cut.trace.gz"]),
        (&["sim", "atlas10k", "w.toml"], 2, &["w.toml:3: ", "cuont"]),
        (&["sim", "disksim:cut.parv"], 2, &["cut.parv:"]),
        (
            &["sim", "disksim:old.parv", "random"],
            2,
            &["old.parv: is a parameter file of DiskSim 2 or earlier; only those of DiskSim 4.0"],
        ),
        (
            &["sim", "disksim:old.diskspecs", "random"],
            2,
            &[
                "old.diskspecs:2: ",
                "as in DiskSim 3.0; only the form of DiskSim 4.0",
            ],
        ),
        (
            &["sim", "disksim:curve.seek", "random"],
            2,
            &["curve.seek: is a seek curve of DiskSim"],
        ),
        (
            &["sim", "disksim:recorded.trace", "random"],
            2,
            &["recorded.trace: is a trace (disksim-ascii), not a drive"],
        ),
        (
            &["sim", "disksim:bound.toml", "random"],
            2,
            &["bound.toml: is not a DiskSim parameter file; for a profile, omit disksim:"],
        ),
        (
            &["validate", "layout.model"],
            2,
            &["layout.model: is a layout of DiskSim, not a trace"],
        ),
        (
            &["sim", "atlas10k", "random", "--set", "Max queue length=16"],
            2,
            &["did you mean queue.depth?"],
        ),
        (&["sim", "disksim:", "random"], 2, &["no file"]),
        (&["sim", "atlas10k", "random,size=0"], 2, &["size", "\"0\""]),
        (
            &["sim", "atlas10k", "random,lbns=0..99999999999"],
            2,
            &["lbns", "99999999999"],
        ),
        (
            &["sim", "atlas10k", "rnadom"],
            2,
            &["rnadom", "random, sequential, mixed"],
        ),
        (&["sim", "atlas10k"], 2, &["no workload"]),
        (
            &[
                "sim",
                "atlas10k",
                "random",
                "--set",
                "queue.scheduler=aged-sptf",
            ],
            2,
            &["{aged-sptf={weight=0.1}}"],
        ),
        (
            &["sim", "absent.toml", "random"],
            3,
            &["absent.toml: No such file"],
        ),
        (
            &["sim", "disksim:absent.parv"],
            3,
            &["absent.parv: No such file"],
        ),
        (
            &["sim", "atlas10k", "absent.trace"],
            3,
            &["absent.trace: No such file"],
        ),
        (
            &["sim", "atlas10k", "random", "--log", "no/such/log.csv"],
            3,
            &["no/such/log.csv: cannot be created: there is no directory no/such"],
        ),
        (
            &["sim", "atlas10k", "random", "--plot", "plot.gif"],
            2,
            &["plot.gif", ".svg or .png"],
        ),
        (
            &["sim", "atlas10k", "pauses.trace", "--speed", "2"],
            2,
            &["pauses.trace: records pauses instead of arrival times; omit --speed"],
        ),
        (
            &["sim", "atlas10k", "log.parquet"],
            2,
            &["log.parquet: is a Parquet file, not a trace"],
        ),
        (
            &["sim", "half.toml", "random"],
            2,
            &["half.toml:", "expected a whole number, or a list"],
        ),
        (
            &["sim", "overlap.toml", "random"],
            2,
            &["overlap.toml:8: geometry: zone 1: overlaps zone 0"],
        ),
        (
            &["sim", "zero.toml", "random"],
            2,
            &["zero.toml:7: geometry: zone 0: sectors_per_track is 0"],
        ),
        (
            &["sim", "host.toml", "random"],
            2,
            &["host.toml:2: host.scheduler = sptf: must be"],
        ),
        (
            &["sim", "spare.toml", "random"],
            2,
            &[
                "spare.toml:2: ",
                "covers no value of this profile; remove this line",
            ],
        ),
        (
            &["map", "cut.parv"],
            2,
            &["cut.parv: is a DiskSim parameter file; write disksim:cut.parv"],
        ),
        (
            &["probe", "cut.parv"],
            2,
            &["is a DiskSim parameter file; write disksim:cut.parv"],
        ),
        (
            &["sim", "atlas10k", "random", "--set", "outstanding=4"],
            2,
            &["did you mean workload.outstanding?"],
        ),
        (
            &["sim", "atlas10k", "random", "--set", "scheduler=sptf"],
            2,
            &["did you mean queue.scheduler?"],
        ),
        (
            &[
                "sim",
                "atlas10k",
                "--drive",
                "atlas10k2",
                "absent.trace",
                "--set",
                "atlas10k2.mechanics.rpm=5400",
            ],
            2,
            &[
                "--set changes all drives: write mechanics.rpm=5400",
                "traxtent convert",
            ],
        ),
        (
            &[
                "sim",
                "atlas10k",
                "--drive",
                "atlas10k2",
                "absent.trace",
                "--set",
                "atlas10k2.Max queue length=4",
            ],
            2,
            &["--set changes all drives: write queue.depth=4"],
        ),
        (
            &[
                "sim",
                "atlas10k",
                "--drive",
                "atlas10k2",
                "absent.trace",
                "--set",
                "atlas10k2.Maxqueuelength=4",
            ],
            2,
            &["atlas10k2.Maxqueuelength is not a key of the profile"],
        ),
        (
            &["validate", "w.toml"],
            2,
            &["w.toml: is a profile, not a trace"],
        ),
        (&["drives", "show", "host"], 2, &["write host.toml"]),
        (
            &["drives", "new", "atlas10k", "--like", "atlas10k2"],
            2,
            &["atlas10k: is the name of a built-in drive"],
        ),
        (
            &["sim", "recorded.trace", "random"],
            2,
            &[
                "recorded.trace: is a trace (disksim-ascii), not a drive",
                "sim DRIVE FILE",
            ],
        ),
        (
            &["map", "pauses.trace"],
            2,
            &["pauses.trace: is a trace (disksim-validate), not a drive"],
        ),
        (
            &["map", "curve.seek"],
            2,
            &["curve.seek: is a seek curve of DiskSim, not a drive"],
        ),
        (
            &["validate", "curve.seek"],
            2,
            &["curve.seek: is a seek curve of DiskSim, not a trace"],
        ),
        (
            &["map", "semicolon.toml"],
            2,
            &[&format!(
                "semicolon.toml:{rpm}: rpm: expected a number, true"
            )],
        ),
        (&["map", "kind.toml"], 2, &["expected a number\n"]),
        (
            &["sim", "atlas10k", "random", "--set", "queue.depth=1..32"],
            2,
            &["a range needs a step, such as 1..32:1"],
        ),
        (&["validate", "absent"], 3, &["absent: No such file"]),
        (&["validate", "."], 2, &["cut.parv:"]),
        (
            &["validate", "bad.trace"],
            2,
            &["there is no bad.parv", "--drive"],
        ),
    ];
    for (arguments, status, says) in cases {
        let answer = traxtent_in(folder.path(), arguments);
        let shown = format!("traxtent {}: {}", arguments.join(" "), answer.err);
        assert_eq!(answer.status, *status, "{shown}");
        let error: Vec<&str> = answer
            .err
            .lines()
            .filter(|line| !line.contains(": note: "))
            .collect();
        let [line] = error[..] else {
            panic!("one line: {shown}")
        };
        assert!(line.starts_with("traxtent: "), "{shown}");
        for part in *says {
            assert!(answer.err.contains(part), "{part:?} in {shown}");
        }
        assert!(answer.out.is_empty(), "{shown}");
    }
}

/// Is there a warning about arrivals out of order if the format permits them, and none if arrival
/// times are not used?
#[test]
fn unordered_arrivals_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("back.trace", "1.0 0 0 8 1\n0.5 0 8 8 1\n");
    write(
        "back.csv",
        "90000,h,0,Read,0,512,3\n10000,h,0,Read,0,512,3\n95000,h,0,Read,0,512,3\n",
    );
    let closed = traxtent_in(
        folder.path(),
        &["sim", "atlas10k", "back.trace", "--replay", "closed:1"],
    );
    assert_eq!((closed.status, closed.err.as_str()), (0, ""));
    let counted = traxtent_in(folder.path(), &["sim", "atlas10k", "back.csv"]);
    assert_eq!(counted.status, 0, "{}", counted.err);
    assert_eq!(
        counted.err,
        "traxtent: warning: back.csv: 1 request arrives before an earlier one in the file, the first in line 2, by up to 8 ms; each is \
         issued together with the preceding request; to issue it at its own time, sort the trace by time\n"
    );
}

/// Is a DiskSim value that is malformed or out of bounds reported with its file, line and DiskSim
/// parameter, and is a warning printed for a value that is reduced, or for a scheduler that is not
/// modelled?
#[test]
fn disksim_errors_name_the_parameter() {
    let folder = tempfile::tempdir().unwrap();
    let model = "dm_disk M {
Number of data surfaces = 2.0,
Number of cylinders = 1000,
Block count = 200000,
Layout Model = dm_layout_g1 {
LBN-to-PBN mapping scheme = 0, Sparing scheme used = 0, Rangesize for sparing = 1,
Zones = [ dm_layout_g1_zone {
First cylinder number = 0, Last cylinder number = 999, Blocks per track = 100, Offset of first block = 0,
Empty space at zone front = 0, Skew for track switch = 10, Skew for cylinder switch = 20, Number of spares = 0,
slips = [], defects = [] } ] },
Mechanical Model = dm_mech_g1 {
Access time type = trackSwitchPlusRotation,
Seek type = hpl,
HPL seek equation values = [ 600.0,
 3.24, 0.4, 8.0, 0.008, 1.0 ],
Head switch time = 1.0,
Rotation speed (in rpms) = 7200 } }
";
    let drive = "disksim_bus B { type = 1, Read block transfer time = 0.05, Write block transfer time = 0.05 }
disksim_disk D {
Model = source d.model,
Max queue length = 4,
Number of buffer segments = 4, Maximum number of write segments = 2, Segment size (in blks) = 64,
Low (write) water mark = 0.5,
High (read) water mark = 0.5,
Read miss over. after read = 5.0,
Time scale for overheads = 1.0 }
instantiate [ bus0 ] as B
instantiate [ disk0 ] as D
topology disksim_iodriver driver0 [ disksim_bus bus0 [ disksim_disk disk0 [ ] ] ]
disksim_iodriver V { type = 1 }
instantiate [ driver0 ] as V
";
    let run = |model: &str, drive: &str| {
        fs::write(folder.path().join("d.model"), model).unwrap();
        fs::write(folder.path().join("d.parv"), drive).unwrap();
        let words = ["sim", "disksim:d.parv", "random,count=10", "--json"];
        let mut answer = traxtent_in(folder.path(), &words);
        // The blocks are short: DiskSim requires more parameters.
        let lines = answer.err.lines();
        let others = lines.filter(|line| !line.contains("lacks parameters that DiskSim requires"));
        answer.err = others.map(|line| format!("{line}\n")).collect();
        answer
    };
    // Whole numbers can have a decimal point: 600.0 cylinders.
    let whole = run(model, drive);
    assert_eq!((whole.status, whole.err.as_str()), (0, ""));
    let plain = run(&model.replace("600.0", "600").replace("2.0,", "2,"), drive);
    assert_eq!(whole.out, plain.out);

    for (from, to, says) in [
        (
            "= 7200",
            "= 0",
            "d.model:17: Rotation speed (in rpms) = 0: must be from 100 to 100000",
        ),
        (
            "= [ 600.0,",
            "= [ 600.5,",
            "d.model:14: HPL seek equation values: 600.5 is not a whole number",
        ),
        (
            " 3.24, 0.4,",
            " 3.24, -0.4,",
            "d.model:15: HPL seek equation values: -0.4: must be from 0 to 10000",
        ),
        (
            "dm_mech_g1",
            "nonsense",
            "d.model:11: mechanical model nonsense is not dm_mech_g1",
        ),
        (
            "Head switch time = 1.0",
            "Head switch time = slow",
            "d.model:16: Head switch time: \"slow\" is not a number",
        ),
        (
            "Blocks per track = 100",
            "Blocks per track = 100.5",
            "d.model:8: Blocks per track: 100.5 is not a whole number",
        ),
        (
            "High (read) water mark = 0.5",
            "High (read) water mark = 7.5",
            "d.parv:7: High (read) water mark = 7.5: must be from 0 to 1",
        ),
        (
            "Low (write) water mark = 0.5",
            "Low (write) water mark = 7.5",
            "d.parv:6: Low (write) water mark = 7.5: must be from 0 to 1",
        ),
        (
            "segments = 4,",
            "segments = 2000000,",
            "d.parv:5: Number of buffer segments = 2000000: must be from 1 to 1048576",
        ),
        (
            "overheads = 1.0",
            "overheads = 9000",
            "d.parv:8: Read miss over. after read = 5: multiplied by \"Time scale for overheads\"",
        ),
        (
            "Read block transfer time = 0.05",
            "Read block transfer time = 20000",
            "d.parv:1: Read block transfer time = 20000: must be from 0 to 10000 ms",
        ),
    ] {
        let (new_model, new_drive) = (model.replace(from, to), drive.replace(from, to));
        assert!(
            (new_model.as_str(), new_drive.as_str()) != (model, drive),
            "{from}"
        );
        let answer = run(&new_model, &new_drive);
        let expected = format!("traxtent: {says}");
        assert!(answer.err.starts_with(&expected), "{to}: {}", answer.err);
        assert_eq!((answer.status, answer.err.lines().count()), (2, 1), "{to}");
    }
    let cut = run(
        model,
        &drive.replace("write segments = 2", "write segments = 7"),
    );
    assert_eq!(cut.status, 0, "{}", cut.err);
    assert_eq!(
        cut.err,
        "traxtent: warning: d.parv:5: \"Maximum number of write segments\" = 7: limited to the 4 of \"Number of buffer \
         segments\"\n"
    );
    // A host's queue does not know the head position that some schedulers need; a warning says so.
    for (policy, name) in [(8, "SPTF_OPT"), (14, "ASPTF_OPT")] {
        let driver = format!(
            "V {{ type = 1, Scheduler = disksim_ioqueue {{ Scheduling policy = {policy} }} }}"
        );
        let by_position = run(model, &drive.replace("V { type = 1 }", &driver));
        assert_eq!(by_position.status, 0, "{}", by_position.err);
        let expected = format!(
            "traxtent: warning: d.parv:13: scheduling policy {policy} ({name}) is not modelled in the host's queue, since"
        );
        assert!(
            by_position.err.starts_with(&expected),
            "{}",
            by_position.err
        );
        assert_eq!(by_position.err.lines().count(), 1, "{}", by_position.err);
    }
}

/// Are output files refused if the format would not match the extension of the name, or if the name
/// is `-`?
#[test]
fn names_of_outputs() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, remedy) in [
        ("sim atlas10k random --log -", "/dev/stdout"),
        ("sim atlas10k random --log a.xlsx", "log.csv.zst"),
        ("sim atlas10k random --summary a.json", "log.parquet"),
        ("sim atlas10k random --summary a.json.gz", "log.parquet"),
        ("serve atlas10k --log a.parquet", "log.csv.zst"),
        ("serve atlas10k --log a.json", "log.csv.zst"),
        ("convert atlas10k --out -", "/dev/stdout"),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let answer = traxtent_in(folder.path(), &arguments);
        assert_eq!(answer.status, 2, "{}", answer.err);
        assert!(answer.err.contains(remedy), "{}", answer.err);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
