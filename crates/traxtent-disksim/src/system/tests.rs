//! Tests of what a system warns of, refuses and takes from DiskSim's files.

use super::super::required::{DISK_REQUIRED, QUEUE_REQUIRED};
use super::*;

/// A system of two disks. Each file has a parameter that is not modelled.
const SYSTEM: &str = "source a\nsource b\ninstantiate [ a0 ] as A\ninstantiate [ b0 ] as B";

fn drive(name: &str) -> String {
    format!(
        "dm_disk {} {{ Number of data surfaces = 1, Number of cylinders = 1, Block count = 1,
        Invented = 1,
        Layout Model = dm_layout_g1 {{ LBN-to-PBN mapping scheme = 0,
        Sparing scheme used = 0, Rangesize for sparing = 1, Zones = [ dm_layout_g1_zone {{
        First cylinder number = 0, Last cylinder number = 0, Blocks per track = 1,
        Offset of first block = 0, Empty space at zone front = 0, Number of spares = 0,
        Skew for track switch = 0, Skew for cylinder switch = 0, slips = [], defects = [] }} ] }},
        Mechanical Model = dm_mech_g1 {{ Seek type = constant, Constant seek time = 1,
        Access time type = trackSwitchPlusRotation, Add. write settling delay = 0,
        Head switch time = 0, Percent error in rpms = 0,
        Rotation speed (in rpms) = 5400 }} }}",
        name.to_uppercase()
    )
}

/// Is a parameter that DiskSim requires reported if it is missing, with the value that is used,
/// and a misspelt one with the right spelling?
#[test]
fn missing_and_misspelt_parameters_are_reported() {
    let full: Vec<String> = DISK_REQUIRED
        .iter()
        .filter(|(key, _)| *key != "Scheduler")
        .map(|(key, value)| format!("{key} = {value},"))
        .collect();
    let model = drive("m")
        .replace("dm_disk M", "Model = dm_disk")
        .replace("Invented = 1,", "");
    let lines = QUEUE_REQUIRED
        .iter()
        .map(|(key, value)| format!("{key} = {value},"));
    let queue = lines.collect::<String>();
    let queue = format!("Scheduler = disksim_ioqueue {{ {queue} }},");
    let load = |parameters: &[String]| {
        let all = parameters.join("\n");
        let text = format!("disksim_disk D {{\n{all}\n{queue} {model} }}");
        let system = load_system("f", text.as_bytes(), None, &|_| Err(String::new())).unwrap();
        (system.disks[0].profile.clone(), system.warnings)
    };
    let (complete, warnings) = load(&full);
    assert_eq!(warnings, Vec::<String>::new());
    for (index, parameter) in full.iter().enumerate() {
        let mut without = full.clone();
        without[index] = String::new();
        let (mut profile, warnings) = load(&without);
        let (key, value) = parameter.trim_end_matches(',').split_once(" = ").unwrap();
        let expected = format!(
            "f:1: disksim_disk lacks parameters that DiskSim requires; the values in parentheses are used: \"{key}\" ({value})"
        );
        assert_eq!(warnings, [expected]);
        profile.provenance = complete.provenance.clone();
        assert_eq!(profile, complete, "{key}");
    }
    let misspelt = full
        .iter()
        .map(|line| line.replace("buffer segments", "bufer segments"));
    let (_, warnings) = load(&misspelt.collect::<Vec<_>>());
    let says = "\"Number of bufer segments\" is not a parameter of disksim_disk; it is ignored; did you mean \"Number of buffer segments\"?";
    assert!(
        warnings.iter().any(|warning| warning.ends_with(says)),
        "{warnings:?}"
    );
}

/// Are the parameters of the selected disk that are not modelled reported, and not those of
/// other disks, which were not read? Without a selection, are those of all disks reported?
#[test]
fn warnings_concern_the_selected_disk() {
    let source = |file: &str| Ok(drive(file).into_bytes());
    let warnings = |only| {
        let system = load_system("f", SYSTEM.as_bytes(), only, &source).unwrap();
        let unused = system.warnings.into_iter();
        let unused = unused.filter(|warning| warning.ends_with("is not modelled"));
        unused.collect::<Vec<_>>()
    };
    let of = |file| format!("{file}:2: \"Invented\" is not modelled");
    assert_eq!(warnings(Some("a0")), [of("a")]);
    assert_eq!(warnings(Some("b0")), [of("b")]);
    assert_eq!(warnings(None), [of("a"), of("b")]);
}

/// A system of two disks on a bus, with two drivers and a mapping.
fn connected() -> String {
    let model = drive("m").replace("dm_disk M", "Model = dm_disk");
    format!(
        "disksim_bus B {{ type = 1, Read block transfer time = 0.5 }}
        disksim_iodriver V {{ Use queueing in subsystem = 1 }}
        disksim_iodriver W {{ Scheduler = disksim_ioqueue {{ Scheduling policy = 2 }} }}
        disksim_disk D {{ {model} }}
        disksim_iosim I {{ I/O Mappings = [
        disksim_iomap {{ tracedev = 4, simdev = disk1, locScale = 512, sizeScale = 2, offset = 7 }}
        ] }}
        disksim_logorg O {{ Addressing mode = Parts, Distribution scheme = Asis,
        Redundancy scheme = Noredun, devices = [ disk0 ], RMW vs. reconstruct = 0.5 }}
        instantiate [ bus0 ] as B\ninstantiate [ driver0 ] as W
        instantiate [ disk0, disk1 ] as D
        topology disksim_iodriver driver0 [ disksim_bus bus0 [
        disksim_disk disk0 [], disksim_disk disk1 [] ] ]"
    )
}

fn load(text: &str, only: Option<&str>) -> Result<System, ParamError> {
    load_system("f", text.as_bytes(), only, &|_| Err(String::new()))
}

/// Returns the warnings without those about parameters that these short blocks lack.
fn other_warnings(system: &System) -> Vec<&str> {
    let warnings = system.warnings.iter().map(String::as_str);
    let others = warnings.filter(|one| !one.contains(" lacks ") && !one.contains("\"Invented\""));
    others.collect()
}

/// Is the driver the one at the root of the topology, or else the one that is instantiated, or
/// else the first block?
#[test]
fn the_driver_of_the_system_is_used() {
    let full = connected();
    let topology = full.find("topology").unwrap();
    let bare = &full[..topology];
    for (text, scheduler, queueing) in [
        (full.as_str(), Scheduler::Look, false),
        (&full.replace("as W", "as V"), Scheduler::Fcfs, true),
        (
            &full.replace(
                "instantiate [ bus0 ]",
                "instantiate [ v0 ] as V instantiate [ bus0 ]",
            ),
            Scheduler::Look,
            false,
        ),
        (bare, Scheduler::Look, false),
        (
            &bare.replace("instantiate [ driver0 ] as W", ""),
            Scheduler::Fcfs,
            true,
        ),
    ] {
        let system = load(text, None).unwrap();
        assert_eq!(system.host_scheduler, scheduler, "{text}");
        assert_eq!(system.queueing_in_disks, queueing, "{text}");
        let origin = system.disks[0].profile.provenance.of("host");
        let is_third = |origin: &str| origin.contains("f:3, disksim_iodriver");
        assert_eq!(origin.is_some_and(|one| is_third(one.note)), !queueing);
    }
}

/// Is a wrong name in the instantiation of disks reported at its own line, whether the disks
/// are in the topology or only in lists of devices? Are names that are given twice refused, and
/// seeds that are not numbers?
#[test]
fn errors_are_reported_at_their_cause() {
    let full = connected();
    let bare = &full[..full.find("topology").unwrap()];
    let line = full[..full.find("as D").unwrap()].lines().count();
    let seed = |seeds: &str| format!("disksim_global G {{ {seeds} }} {full}");
    let missing = "there is no block \"DD\", of which";
    for (text, only, expected) in [
        (full.replace("as D", "as DD"), None, missing),
        (full.replace("as D", "as DD"), Some("disk1"), missing),
        (bare.replace("as D", "as DD"), None, missing),
        (
            full.replace("[ disk0, disk1 ]", "[ disk0, disk0 ]"),
            None,
            "a disk \"disk0\" is instantiated already",
        ),
    ] {
        let error = load(&text, only).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("f:{line}: {expected}")),
            "{error}"
        );
    }
    let stated = |seeds: &str| load(&seed(seeds), None).unwrap().seed;
    assert_eq!(stated("Init Seed = 4"), Some(4));
    assert_eq!(stated("Init Seed = 4, Real Seed = 5"), Some(5));
    for (seeds, says) in [
        (
            "Init Seed = PID",
            "f:1: Init Seed: \"PID\" is not a whole number",
        ),
        (
            "Init Seed = 1, Real Seed = 4.5",
            "f:1: Real Seed: 4.5 is not a whole number",
        ),
        ("Init Seed = x, Real Seed = 4", "f:1: Init Seed: \"x\" is"),
        ("Real Seed = -1", "f:1: Real Seed: -1 is not in 0..="),
    ] {
        let error = load(&seed(seeds), None).unwrap_err().to_string();
        assert!(
            error.starts_with(says) && error.contains("--seeds"),
            "{error}"
        );
    }
}

/// Does a disk that is selected by its block have the bus of the block's first instance? Is a
/// disk without a bus reported, and no other?
#[test]
fn disks_without_a_bus_are_reported() {
    let full = connected();
    let topology = full.find("topology").unwrap();
    let warning = |names: &str| {
        format!(
            "f:{}: {names}: no bus in the topology: transfers take only the \"Bulk sector \
             transfer time\" of the drive",
            full[..full.find("as D").unwrap()].lines().count()
        )
    };
    let misspelt = "is not a kind of device in DiskSim";
    for (text, only, has_bus, expected) in [
        (full.as_str(), None, true, &[][..]),
        (&full, Some("D"), true, &[]),
        (&full[..topology], None, false, &[warning("disk0, disk1")]),
        (&full[..topology], Some("D"), false, &[warning("disk0")]),
        (
            &full.replace("disksim_disk disk1 []", ""),
            None,
            true,
            &[warning("disk1")],
        ),
        (
            &full.replace("disksim_disk disk0", "disksim_dsk disk0"),
            Some("disk0"),
            false,
            &[warning("disk0"), misspelt.to_owned()],
        ),
    ] {
        let system = load(text, only).unwrap();
        let bus = &system.disks[0].profile.bus;
        assert_eq!(bus.read_sector_ms > 0.0, has_bus, "{text}");
        let warnings = other_warnings(&system);
        assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
        let mut pairs = warnings.iter().zip(expected);
        assert!(pairs.all(|(one, says)| one.contains(says)), "{warnings:?}");
    }
}

/// Is a value that DiskSim refuses for a flag refused, with its place and bounds? Is 2 accepted for
/// those for which DiskSim accepts it?
#[test]
fn flags_are_checked() {
    let full = connected();
    for (flag, max) in [
        ("Use queueing in subsystem", 1),
        ("Synch writes for safety", 1),
        ("Hold bus entire read xfer", 1),
        ("Use separate write segment", 1),
        ("Read directly to buffer", 1),
        ("Read-ahead over requested", 1),
        ("Enable caching in buffer", 2),
        ("Immediate buffer read", 2),
        ("Immediate buffer write", 2),
    ] {
        let with = |value: i64| {
            let stated = format!("\n{flag} = {value},");
            let text = full.replace("disksim_disk D {", &format!("disksim_disk D {{{stated}"));
            let text = text.replace("W {", &format!("W {{{stated}"));
            let text = text.replace("Asis", &format!("Striped,{stated}\nStripe unit = 1"));
            let text = text
                .replace("Noredun", "Parity_disk")
                .replace("Parts", "Array");
            text.replace("[ disk0 ]", "[ disk0, disk1 ]")
                .replace("= disk1", "= disk0")
        };
        for value in 0..=max {
            let loaded = load(&with(value), None);
            let problem = loaded.err().map(|error| error.problem);
            let is_modelled = (flag, value) != ("Synch writes for safety", 1);
            assert_eq!(problem.is_none(), is_modelled, "{flag}: {problem:?}");
        }
        let text = with(max + 1);
        let error = load(&text, None).unwrap_err();
        let line = text.lines().nth(error.line as usize - 1).unwrap();
        assert!(
            line.starts_with(&format!("{flag} = {},", max + 1)),
            "{error}"
        );
        let says = format!("..={max}");
        assert!(
            error
                .problem
                .starts_with(&format!("{flag}: {} is not in ", max + 1)),
            "{error}"
        );
        assert!(error.problem.ends_with(&says), "{error}");
    }
}

/// Are mappings of other disks read without a warning? Are values that DiskSim refuses refused,
/// and is a second mapping of a device reported?
#[test]
fn mappings_are_checked() {
    let full = connected();
    for only in [None, Some("disk0"), Some("disk1")] {
        let system = load(&full, only).unwrap();
        assert_eq!(other_warnings(&system), [""; 0]);
        assert_eq!(system.devices.len(), usize::from(only != Some("disk0")));
    }
    for (from, to, says) in [
        (
            "locScale = 512",
            "locScale = 0",
            "locScale: 0 is less than 1",
        ),
        (
            "locScale = 512",
            "locScale = -1",
            "locScale: -1 is less than 1",
        ),
        (
            "locScale = 512",
            "locScale = 500",
            "locScale: 500 is neither a divisor nor a multiple of 512",
        ),
        (
            "sizeScale = 2",
            "sizeScale = 0",
            "sizeScale: 0 is less than 1",
        ),
        ("offset = 7", "offset = -7", "offset: -7 is less than 0"),
    ] {
        let error = load(&full.replace(from, to), None).unwrap_err();
        assert!(error.problem.ends_with(says), "{error}");
    }
    for (scale, sectors) in [(256, 0.5), (1024, 2.0)] {
        let text = full.replace("locScale = 512", &format!("locScale = {scale}"));
        let map = load(&text, None).unwrap().devices[0];
        assert_eq!(map.sectors_per_unit, sectors);
    }
    let second = "offset = 7 }, disksim_iomap { tracedev = 4, simdev = disk0 }";
    let system = load(&full.replace("offset = 7 }", second), None).unwrap();
    let says = "device 4 of traces is mapped already; this mapping is ignored";
    assert!(other_warnings(&system)[0].ends_with(says));
    assert_eq!((system.devices.len(), system.devices[0].disk), (1, 1));
}

/// Is a device that is not a disk reported, since the numbers of later disks change? Is the
/// point at which DiskSim reconstructs parity reported for organizations with parity only?
#[test]
fn other_devices_and_updates_of_parity_are_reported() {
    let full = connected();
    let simple = "disksim_simpledisk S {}\ninstantiate [ s0 ] as S\ninstantiate [ disk0,";
    let with_simple = full.replace("instantiate [ disk0,", simple);
    let never = full.replace("reconstruct = 0.5", "reconstruct = 0");
    let misspelt = full.replace("RMW vs. reconstruct", "RMW vs reconstruct");
    let array = never.replace("Parts", "Array").replace("Asis", "Striped");
    let array = array.replace("Noredun", "Parity_disk, Stripe unit = 1");
    let array = array.replace("[ disk0 ]", "[ disk0, disk1 ]");
    let array = array.replace("simdev = disk1", "simdev = disk0");
    for (text, expected) in [
        (
            &with_simple,
            Some(
                "s0 is left out, and the disks after it have lower device numbers than in DiskSim",
            ),
        ),
        (&never, None),
        (
            &misspelt,
            Some(
                "is not a parameter of disksim_logorg; it is ignored; did you mean \"RMW vs. reconstruct\"?",
            ),
        ),
        (
            &array,
            Some(
                "\"RMW vs. reconstruct\" is not modelled: parity is updated with the fewest reads",
            ),
        ),
    ] {
        let system = load(text, None).unwrap();
        let warnings = other_warnings(&system);
        assert_eq!(
            warnings.len(),
            usize::from(expected.is_some()),
            "{warnings:?}"
        );
        let says = expected.unwrap_or_default();
        assert!(
            warnings.iter().all(|one| one.ends_with(says)),
            "{warnings:?}"
        );
        assert_eq!(other_warnings(&load(text, Some("disk0")).unwrap()).len(), 0);
    }
}

/// The two disks with a synthetic workload, of which each parameter has a line of its own.
fn synthetic() -> String {
    let distributions = [
        "Time-limited think times",
        "General inter-arrival times",
        "Sequential inter-arrival times",
        "Local inter-arrival times",
        "Local distances",
        "Sizes",
    ];
    let distributions = distributions.map(|key| format!("{key} = [ normal, 1, 2 ],\n"));
    format!(
        "disksim_pf P {{ Number of processors = 1 }}
        disksim_synthio S {{
        Number of I/O requests to generate = 9,
        Maximum time of trace generated = 9.0,
        System call/return with each request = 0,
        Think time from call to request = 0.0,
        Think time from request to return = 0.0,
        Generators = [ disksim_synthgen {{
        Storage capacity per device = 2,
        devices = [ disk0 ],
        Blocking factor = 1,
        Probability of sequential access = 0.4,
        Probability of local access = 0.6,
        Probability of read access = 0.5,
        Probability of time-critical request = 0.0,
        Probability of time-limited request = 0.3,
        {}}} ] }}\n{}",
        distributions.concat(),
        connected().replace("        disksim_iodriver V", "disksim_iodriver V")
    )
}

/// Does one message name all parameters that a block of a workload, an organization or a layout
/// needs and lacks, with a misspelt one? Is an unclear value refused with its key?
#[test]
fn errors_of_a_workload_name_all_that_is_wrong() {
    let full = synthetic();
    let marked = format!("\u{feff}{full}");
    assert_eq!(other_warnings(&load(&marked, None).unwrap()), [""; 0]);
    for (from, to, says) in [
        (
            &["Blocking factor = 1,", "Sizes = [ normal, 1, 2 ],"][..],
            "",
            "disksim_synthgen has no \"Blocking factor\", no \"Sizes\"",
        ),
        (
            &["Local distances"],
            "Local distance",
            "disksim_synthgen has no \"Local distances\"; is \"Local distance\" (f:21) a misspelling of \"Local distances\"?",
        ),
        (
            &[
                "Number of I/O requests to generate = 9,",
                "Maximum time of trace generated = 9.0,",
            ],
            "",
            "f:2: disksim_synthio has no \"Number of I/O requests to generate\", no \"Maximum time of trace generated\"",
        ),
        (
            &["Addressing mode = Parts,", "Redundancy scheme = Noredun,"],
            "",
            "disksim_logorg has no \"Addressing mode\", no \"Redundancy scheme\"",
        ),
        (
            &["Parts", "Asis"],
            "Striped",
            "disksim_logorg has no \"Stripe unit\"",
        ),
        (
            &["Block count = 1,", "Number of data surfaces = 1,"],
            "",
            "dm_disk has no \"Number of data surfaces\", no \"Block count\"",
        ),
        (
            &["First cylinder number = 0,", "Blocks per track = 1,"],
            "",
            "dm_layout_g1_zone has no \"First cylinder number\", no \"Blocks per track\"",
        ),
        (
            &["Seek type = constant,"],
            "",
            "dm_mech_g1 has no \"Seek type\"",
        ),
        (
            &["Sizes = [ normal, 1, 2 ]"],
            "Sizes = [ normal, 1 ]",
            "f:22: Sizes: normal with 1 number is not a distribution",
        ),
        (
            &["Seek type = constant, Constant seek time = 1"],
            "Seek type = linear, Average seek times = 5",
            "dm_mech_g1 has no \"Single cylinder seek time\", no \"Average seek time\", no \"Full strobe seek time\"; is \"Average seek times\" (",
        ),
        (
            &["Constant seek time = 1,"],
            "",
            "dm_mech_g1 has no \"Constant seek time\"",
        ),
        (&["Zones = ["], "Zones = [ ], Z = [", "Zones is empty"),
        (
            &["Sizes = [ normal, 1, 2 ]"],
            "Sizes = [ twovalue, 8, 16, 50 ]",
            "f:22: Sizes: the probability of twovalue, its third number, is 50; must be from 0 to 1",
        ),
        (
            &["access = 0.6"],
            "access = 0,6",
            "f:13: 0,6 is not a number, since it contains a comma",
        ),
        (
            &["access = 0.6"],
            "access = 0.6 ms",
            "f:13: \"ms\" follows a value; remove it: values have no units",
        ),
        (
            &["devices = [ disk0 ],\n        Blocking"],
            "devices = [ org0 ],\n        Blocking",
            "f:10: there is no disk or organization \"org0\"",
        ),
        (
            &["Redundancy scheme = Noredun"],
            "Redundancy scheme = RAID5",
            "Redundancy scheme: RAID5 is not one of Noredun, Shadowed, Parity_disk, Parity_rotated",
        ),
        (
            &["generated = 9.0"],
            "generated = 0",
            "f:4: Maximum time of trace generated = 0: must be more than 0 s",
        ),
        (
            &["each request = 0"],
            "each request = 2",
            "f:5: System call/return with each request: 2 is not in 0..=1",
        ),
        (
            &["return = 0.0"],
            "return = -1",
            "f:7: Think time from request to return = -1: must be from 0 to 10000 ms",
        ),
        (
            &["disksim_synthgen"],
            "disksim_synthgn",
            "f:8: expected a disksim_synthgen block, found disksim_synthgn",
        ),
        (
            &["disksim_ioqueue"],
            "disksim_queue",
            "expected a disksim_ioqueue block, found disksim_queue",
        ),
        (
            &["type = 1, Read"],
            "type = 3, Read",
            "type: 3 is not in 1..=2",
        ),
        (
            &["disksim_disk D"],
            "disksim_disc D",
            "\"disksim_disc\" is not a kind of block in DiskSim; the block is ignored; did you mean \"disksim_disk\"?",
        ),
        (
            &["topology"],
            "topolgy",
            "expected \"{\", found \"driver0\"; did you mean \"topology\" by \"topolgy\"?",
        ),
        (
            &["Scheduling policy = 2"],
            "Scheduling policy = sptf",
            "Scheduling policy: \"sptf\" is not the number of a policy; SPTF_OPT is 8",
        ),
        (
            &["Scheduling policy = 2"],
            "Scheduling policy = best",
            "Scheduling policy: \"best\" is not the number of a policy; the numbers are 1 (FCFS) to 28 (BATCH_FCFS)",
        ),
    ] {
        let text = from.iter().fold(full.clone(), |text, from| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        let error = load(&text, None).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// Is a generator on a device that is left out refused for that reason, and not for its name?
#[test]
fn a_generator_on_another_device() {
    let simple = "disksim_simpledisk T {}\ninstantiate [ s0 ] as T\ninstantiate [ disk0";
    let text = synthetic().replace(
        "devices = [ disk0 ],\n        Blocking",
        "devices = [ s0 ],\n        Blocking",
    );
    let text = text.replacen("instantiate [ disk0", simple, 1);
    let error = load(&text, None).unwrap_err().to_string();
    let says = "f:10: \"s0\" is a disksim_simpledisk, which is not modelled; name disks (disksim_disk or dm_disk)";
    assert_eq!(error, says);
}

/// Is there a warning of a missing number of processors, and of two probabilities of which one draw
/// decides, if their sum exceeds 1?
#[test]
fn doubtful_workloads_are_reported() {
    let full = synthetic();
    let warnings = |from: &str, to: &str| load(&full.replace(from, to), None).unwrap().warnings;
    for (from, to, says) in [
        (
            "Number of processors = 1",
            "",
            "f:1: disksim_pf lacks parameters that DiskSim requires; the values in parentheses are used: \"Number of processors\" (1)",
        ),
        (
            "disksim_pf P { Number of processors = 1 }",
            "",
            "f:2: there is no disksim_pf block, which DiskSim requires for a synthetic workload; 1 processor is used",
        ),
        (
            "local access = 0.6",
            "local access = 0.8",
            "f:13: \"Probability of sequential access\" = 0.4 and \"Probability of local access\" = 0.8 sum to 1.2; as in DiskSim, the second is only what the first leaves of 1",
        ),
        (
            "critical request = 0.0",
            "critical request = 0.8",
            "f:16: \"Probability of time-critical request\" = 0.8 and \"Probability of time-limited request\" = 0.3 sum to 1.1; as in DiskSim, the second is only what the first leaves of 1",
        ),
    ] {
        let before = load(&full, None).unwrap().warnings.len();
        let after = warnings(from, to);
        assert!(after.iter().any(|one| one == says), "{after:?}");
        assert_eq!(after.len(), before + 1, "{after:?}");
    }
}

/// Is an organization that is not modelled refused for its true cause: a disk that is used twice, a
/// single disk, or its addressing mode? Is an array found by its name and by that of its instance?
#[test]
fn organizations_are_refused_for_their_cause() {
    let full = connected().replace("simdev = disk1", "simdev = disk0");
    let line = full[..full.find("devices = ").unwrap()].lines().count();
    let (scheme, end) = (line - 1, full.lines().count());
    let striped = |mode: &str, redundancy: &str, devices: &str| {
        let text = full.replace("Parts", mode).replace("Asis", "Striped");
        let text = text.replace("Noredun", &format!("{redundancy}, Stripe unit = 1"));
        let rotated = "Parity rotation type = 1, Parity stripe unit = 1";
        let text = text.replace("RMW vs. reconstruct = 0.5", rotated);
        text.replace("devices = [ disk0 ]", &format!("devices = [ {devices} ]"))
    };
    let second = |devices: &str| {
        let text = striped("Array", "Noredun", "disk0, disk2");
        let text = text.replace("disk0, disk1 ] as", "disk0, disk1, disk2, disk3 ] as");
        format!(
            "{text}\ndisksim_logorg P {{ Addressing mode = Array, Distribution scheme = Striped,
            Redundancy scheme = Noredun, Stripe unit = 1,\ndevices = [ {devices} ] }}"
        )
    };
    let two = second("disk1, disk3");
    assert_eq!(load(&two, None).unwrap().arrays.len(), 2);
    let instances = format!("{two}\ninstantiate [ org0 ] as O\ninstantiate [ org1 ] as P");
    for (name, array) in [("O", 0), ("P", 1), ("org0", 0), ("org1", 1)] {
        let text = instances.replace("simdev = disk0", &format!("simdev = {name}"));
        assert_eq!(load(&text, None).unwrap().devices[0].disk, array, "{name}");
    }
    for (text, says) in [
        (
            striped("Array", "Parity_rotated", "disk0, disk1, disk1"),
            format!("f:{line}: O: disk1 is a disk of O already; arrays cannot share disks"),
        ),
        (
            second("disk1, disk2"),
            format!(
                "f:{}: P: disk2 is a disk of O already; arrays cannot share disks",
                end + 3
            ),
        ),
        (
            striped("Array", "Parity_rotated", "disk0"),
            format!(
                "f:{scheme}: O: Distribution scheme = Striped is not modelled with a single disk; \
                 list several, or use Asis and Noredun"
            ),
        ),
        (
            striped("Array", "Noredun", "disk0"),
            format!(
                "f:{scheme}: O: Distribution scheme = Striped is not modelled with a single disk"
            ),
        ),
        (
            striped("Parts", "Parity_rotated", "disk0, disk1"),
            format!(
                "f:{scheme}: O: Distribution scheme = Striped is not modelled with Addressing mode = \
                 Parts; use Array, or Asis and Noredun"
            ),
        ),
        (
            striped("Array", "Noredun", "disk0, disk1").replace("= disk0", "= disk1"),
            "there is no array \"disk1\"; the file has 1 array (O), and a disk's name means the \
             array with the disk's number, counted from 0"
                .to_owned(),
        ),
        (
            striped("Array", "Parity_rotated", "disk0, disk1")
                .replace("type = 1, P", "type = 2, P"),
            "Parity rotation type: only 1 is modelled".to_owned(),
        ),
        (
            striped("Array", "Parity_rotated", "disk0, disk1")
                .replace("Parity stripe unit = 1", "Parity stripe unit = 2"),
            "Parity stripe unit: only 1 is modelled with \"Stripe unit\" = 1".to_owned(),
        ),
    ] {
        let error = load(&text, None).unwrap_err().to_string();
        assert!(error.contains(&says), "{error}\n{says}");
        assert!(!error.contains("type: only 1 is modelled "), "{error}");
    }
}

/// Is there a warning of a skew that is longer than a track, of a slip beyond its zone, and of a
/// time in a seek curve that is probably in seconds, but not of the greatest values that are
/// possible?
#[test]
fn doubtful_models_are_reported() {
    let extracted = "Seek type = extracted, Full seek curve = c,";
    let full = drive("m").replace("Seek type = constant,", extracted);
    let full = full.replace("Blocks per track = 1,", "Blocks per track = 9,");
    let full = full.replace("scheme used = 0", "scheme used = 10");
    let curve = |ms: &str| format!("Seek distances measured: 2\n1, 7.2\n10, {ms}\n");
    let warnings = |from: &str, to: &str, ms: &str| {
        assert!(full.contains(from), "{from}");
        let sources = |_: &str| Ok(curve(ms).into_bytes());
        let text = full.replace(from, to);
        let system = load_system("f", text.as_bytes(), None, &sources).unwrap();
        let warnings = system.warnings.into_iter();
        let doubts = ["longer than", "beyond the end", "milliseconds"];
        let doubtful = |one: &String| doubts.iter().any(|doubt| one.contains(doubt));
        warnings.filter(doubtful).collect::<Vec<_>>()
    };
    for (from, to, ms, says) in [
        ("track switch = 0", "track switch = 9", "10.5", None),
        (
            "track switch = 0",
            "track switch = 10",
            "10.5",
            Some(
                "f:1: line 7: Skew for track switch = 10 blocks is longer than the track, which has \
                 9 blocks",
            ),
        ),
        (
            "Skew for cylinder switch = 0",
            "Skew units = revolutions, Skew for cylinder switch = -1.5",
            "10.5",
            Some("line 7: Skew for cylinder switch = -1.5 revolutions is longer than the track"),
        ),
        ("slips = []", "slips = [ 8 ]", "10.5", None),
        (
            "slips = []",
            "slips = [ 3, 9 ]",
            "10.5",
            Some("f:1: line 4: slips: 9 is beyond the end of the zone"),
        ),
        ("slips = []", "slips = []", "1.0", None),
        (
            "slips = []",
            "slips = []",
            "0.0105",
            Some(
                "c: a seek over 10 cylinders takes 0.0105 ms, but one over 1 takes 7.2 ms; times \
                 must be in milliseconds",
            ),
        ),
    ] {
        let found = warnings(from, to, ms);
        assert_eq!(found.len(), usize::from(says.is_some()), "{found:?}");
        let says = says.unwrap_or_default();
        assert!(found.iter().all(|one| one.contains(says)), "{found:?}");
    }
}
