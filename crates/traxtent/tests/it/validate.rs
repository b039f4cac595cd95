//! `traxtent validate`.

use std::fs;

use testkit::shared_data;

use super::command::{json, traxtent};

/// Is the demerit of each of the seven traces at most DiskSim's, and is the error of the mean at
/// most DiskSim's or 0.5 %?
#[test]
fn no_worse_than_disksim() {
    let data = shared_data!("disksim");
    // The trace, DiskSim's demerit and mean, in microseconds.
    let reference = [
        ("atlas10k", 268, 3971),
        ("atlas_III", 378, 6139),
        ("barracuda", 348, 6426),
        ("cheetah4LP", 318, 5070),
        ("hp_c2247a", 89, 15_312),
        ("hp_c3323a", 305, 15_573),
        ("ibm18es", 136, 5236),
    ];
    let verdicts = json(&["validate", data.to_str().unwrap(), "--json"]);
    let verdicts = verdicts.as_array().unwrap();
    assert_eq!(verdicts.len(), reference.len());
    for (verdict, (name, rms, mean)) in verdicts.iter().zip(reference) {
        assert_eq!(verdict["trace"], name);
        let (rms, mean) = (f64::from(rms) / 1e3, f64::from(mean) / 1e3);
        let figure = |key: &str| verdict[key].as_f64().unwrap();
        assert!(figure("requests") > 9000.0);
        assert!(figure("rms_ms") <= rms + 0.005, "{verdict}");
        let measured = figure("measured_mean_ms");
        let error = (figure("mean_ms") - measured).abs();
        // DiskSim prints its means with three decimals.
        assert!(
            error <= (mean - measured).abs() + 0.0005 || error <= 0.005 * measured,
            "{verdict}"
        );
    }
}

/// With the buffer's settings on the results page, do model and drive agree, for at least 99 % of
/// the reads (98.7 % on one drive), on what is in the buffer? The settings were found in these
/// traces, so this guards against regressions and predicts nothing.
#[test]
fn hits_agree() {
    let data = shared_data!("disksim");
    let whole_track = [
        "cache.writes_update=true",
        "cache.read_ahead.whole_track=true",
    ];
    let sequential = [
        "cache.segment_sectors=512",
        "cache.read_ahead.max_sectors=0",
        "cache.read_ahead.until=segment-end",
        "cache.read_ahead.sequential_only=true",
        "access.read_on_arrival=true",
    ];
    let from_start = [
        "cache.read_ahead.max_sectors=0",
        "cache.read_ahead.max_from_request_start=true",
    ];
    let dropped = [
        "cache.drop_delivered=true",
        "cache.segments=2",
        "cache.read_ahead.on_idle_hit=true",
    ];
    // The trace, its settings, and the bound on the share of reads that differ.
    let drives: [(&str, Vec<&str>, f64); 7] = [
        ("atlas10k", whole_track.to_vec(), 0.01),
        ("atlas_III", [&whole_track[..], &sequential].concat(), 0.01),
        ("barracuda", dropped.to_vec(), 0.01),
        // Missed: the drive's read-ahead fails now and then, four times as often on two of its
        // heads.
        ("cheetah4LP", dropped.to_vec(), 0.013),
        ("hp_c2247a", vec![], 0.01),
        ("hp_c3323a", vec![], 0.01),
        ("ibm18es", from_start.to_vec(), 0.01),
    ];
    for (name, figures, bound) in drives {
        let trace = data.join(format!("{name}.trace"));
        let mut arguments = vec!["validate", trace.to_str().unwrap(), "--quiet", "--json"];
        figures
            .iter()
            .for_each(|figure| arguments.extend(["--set", figure]));
        let verdicts = json(&arguments);
        let disagreement = verdicts[0]["hits"]["disagreement"].as_f64().unwrap();
        assert!(disagreement <= bound, "{name}: {disagreement}");
    }
}

/// Are traces without parameters, and parameters without traces, reported? Are the other pairs
/// compared, even if a file is broken or missing?
#[test]
fn incomplete_pairs_are_reported() {
    let data = shared_data!("disksim");
    let folder = tempfile::tempdir().unwrap();
    for file in [
        "ibm18es.parv",
        "ibm18es.trace",
        "ibm18es.diskspecs",
        "ibm18es.model",
        "ibm18es.seek",
        "statdefs",
    ] {
        fs::copy(data.join(file), folder.path().join(file)).unwrap();
    }
    fs::copy(
        data.join("ibm18es.trace"),
        folder.path().join("alone.trace"),
    )
    .unwrap();
    fs::copy(data.join("ibm18es.parv"), folder.path().join("idle.parv")).unwrap();
    let plots = folder.path().join("plots");
    let answer = traxtent(&[
        "validate",
        folder.path().to_str().unwrap(),
        "--plot",
        plots.to_str().unwrap(),
    ]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(
        answer
            .err
            .contains("alone.trace: omitted, because there is no alone.parv"),
        "{}",
        answer.err
    );
    assert!(
        answer.err.contains("parameters without a trace: idle"),
        "{}",
        answer.err
    );
    let overview = answer.out.split("\n\n").next().unwrap();
    assert_eq!(overview.lines().count(), 2);
    assert!(
        fs::read_to_string(plots.join("ibm18es.svg"))
            .unwrap()
            .contains("simulated")
    );

    // A broken file does not prevent the comparison of the others.
    fs::write(folder.path().join("torn.trace"), "0.1 R 0\n").unwrap();
    fs::copy(data.join("ibm18es.parv"), folder.path().join("torn.parv")).unwrap();
    let answer = traxtent(&["validate", folder.path().to_str().unwrap()]);
    assert_eq!(answer.status, 1, "{}", answer.err);
    let overview = answer.out.split("\n\n").next().unwrap();
    assert_eq!(overview.lines().count(), 2, "{}", answer.out);
    let last: Vec<&str> = answer.err.lines().rev().take(2).collect();
    assert_eq!(last[0], "traxtent: not compared: torn");
    // This is an error, not a warning, so `--quiet` does not omit it.
    assert!(!last[1].contains("warning: "), "{}", answer.err);
    assert!(last[1].contains("torn.trace: "), "{}", answer.err);

    // Nor does a file that is missing.
    let trace = folder.path().join("ibm18es.trace");
    let absent = folder.path().join("absent.trace");
    let paths = [trace.to_str().unwrap(), absent.to_str().unwrap()];
    let answer = traxtent(&["validate", paths[1], paths[0], "--quiet"]);
    assert_eq!(answer.status, 3, "{}", answer.err);
    let overview = answer.out.split("\n\n").next().unwrap();
    assert_eq!(overview.lines().count(), 2, "{}", answer.out);
    let expected = format!(
        "traxtent: {}: No such file or directory\ntraxtent: not compared: absent\n",
        paths[1]
    );
    assert_eq!(answer.err, expected);

    // Of a trace that is there twice, the uncompressed file is used. Parameters find either.
    let compressed = folder.path().join("ibm18es.trace.gz");
    let file = fs::File::create(&compressed).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &fs::read(&trace).unwrap()).unwrap();
    gzip.finish().unwrap();
    for name in ["torn.trace", "torn.parv", "alone.trace", "idle.parv"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    let twice = traxtent(&["validate", folder.path().to_str().unwrap()]);
    let says = format!(
        "{}: omitted, because {} has the same name",
        compressed.display(),
        trace.display()
    );
    assert!(twice.err.contains(&says), "{}", twice.err);
    fs::remove_file(&trace).unwrap();
    let parameters = folder.path().join("ibm18es.parv");
    let alone = traxtent(&["validate", parameters.to_str().unwrap(), "--quiet"]);
    assert_eq!((alone.status, &alone.out), (0, &twice.out), "{}", alone.err);
}

/// Does `--set` change the drive, and does `--quiet` omit only notes and warnings?
#[test]
fn changed_and_quiet() {
    let data = shared_data!("disksim");
    let parameters = data.join("ibm18es.parv");
    let run = |more: &[&str]| {
        let plain = ["validate", parameters.to_str().unwrap(), "--json"];
        traxtent(&[&plain, more].concat())
    };
    let plain = run(&[]);
    assert!(plain.err.contains("warning: "), "{}", plain.err);
    let quiet = run(&["--quiet"]);
    assert_eq!((quiet.err.as_str(), &quiet.out), ("", &plain.out));
    let changed = run(&["--set", "mechanics.rpm=3600", "--quiet"]);
    assert!(
        changed.status == 0 && changed.out != plain.out,
        "{}",
        changed.err
    );
    for wrong in ["mechanics.rpm=1", "mechanics.rpm=3600,7200", "rpm"] {
        let answer = run(&["--set", wrong, "--quiet"]);
        assert_ne!(answer.status, 0, "{wrong}");
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    }
}

/// Is each warning printed once, although several traces are replayed on one drive? Is there a
/// warning for requests that are not compared, with their trace, even with `--quiet`?
#[test]
fn warnings_name_the_trace_once() {
    let data = shared_data!("disksim");
    let folder = tempfile::tempdir().unwrap();
    let drive = format!("disksim:{}", data.join("ibm18es.parv").display());
    let names = ["one.csv", "two.csv"];
    let paths = names.map(|name| {
        let path = folder.path().join(name);
        // The second request has no response time.
        fs::write(
            &path,
            "ms,op,lbn,size,took\n0,R,0,8,9\n50,R,800,8,\n90,R,64,8,9\n",
        )
        .unwrap();
        path.to_str().unwrap().to_owned()
    });
    let columns = "time=ms,op=op,lbn=lbn,sectors=size,response=took";
    let run = |more: &[&str]| {
        let traces = ["validate", &paths[0], &paths[1], "--drive", &drive];
        let form = ["--columns", columns, "--units", "ms"];
        let answer = traxtent(&[&traces[..], &form, more].concat());
        assert_eq!(answer.status, 0, "{}", answer.err);
        answer.err
    };
    let omitted: Vec<String> = paths
        .iter()
        .map(|path| {
            format!(
                "traxtent: warning: {path}: omitted 1 request without a measured time from the \
                 comparison"
            )
        })
        .collect();
    let quiet = run(&["--quiet"]);
    assert_eq!(quiet.lines().collect::<Vec<_>>(), omitted);
    let all = run(&[]);
    let mut lines: Vec<&str> = all.lines().collect();
    let count = lines.len();
    assert!(
        count > omitted.len(),
        "the drive's parameters have warnings"
    );
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), count, "{all}");
}

/// Are flushes of a served drive's log omitted, also between requests on the media?
#[test]
fn a_log_with_flushes() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.csv");
    let path = log.to_str().unwrap();
    let sim = [
        "sim",
        "generic-20tb",
        "random,count=4,read=0",
        "--log",
        path,
    ];
    assert_eq!(traxtent(&sim).status, 0);
    // The flushes have the times of the requests that they follow.
    let text = fs::read_to_string(&log).unwrap();
    let (head, rows) = text.split_once('\n').unwrap();
    let mut with_flushes = format!("{head}\n");
    for (number, row) in rows.lines().enumerate() {
        let mut fields: Vec<&str> = row.split(',').collect();
        let measured = fields.iter().position(|field| field.is_empty()).unwrap();
        fields[measured] = "5.000000000";
        with_flushes += &format!("{},{}\n", 2 * number, fields[1..].join(","));
        (fields[2], fields[4], fields[5]) = ("flush", "0", "0");
        with_flushes += &format!("{},{}\n", 2 * number + 1, fields[1..].join(","));
    }
    fs::write(&log, with_flushes).unwrap();
    let answer = traxtent(&["validate", path, "--drive", "generic-20tb"]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(
        answer
            .err
            .contains("omitted 4 requests that flush the cache"),
        "{}\n{}",
        answer.err,
        answer.out
    );
}

/// Does a trace without measured times fail if it was named, also beside one that is compared? Is
/// it only noted if it was found in a directory? Are warnings about a drive that is not used
/// omitted?
#[test]
fn a_trace_without_measured_times() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (measured, plain) = (file("measured.trace"), file("plain.trace"));
    let names = "time,op,lbn,sectors,response\n";
    fs::write(&measured, format!("{names}0,R,8,8,9\n50,R,80,8,9\n")).unwrap();
    fs::write(&plain, format!("{names}0,R,8,8,\n50,R,80,8,\n")).unwrap();
    let validate = ["validate", "--drive", "hp-c2247", "--units=ms"];
    let columns = "--columns=time=time,op=op,lbn=lbn,sectors=sectors,response=response";
    let validate = [&validate[..], &[columns]].concat();
    let answer = traxtent(&[&validate[..], &["--quiet", &measured, &plain]].concat());
    assert_eq!(answer.status, 1, "{}", answer.err);
    // Two requests are too few for a noise.
    let row = answer.out.lines().find(|row| row.starts_with("measured "));
    assert!(row.unwrap().trim_end().ends_with(" -"), "{}", answer.out);
    let says = "plain.trace: has no measured times";
    assert!(answer.err.contains(says), "{}", answer.err);
    // A trace that is named twice, once by its directory, is compared once.
    let folder = folder.path().to_str().unwrap();
    let answer = traxtent(&[&validate[..], &["--quiet", &measured, folder]].concat());
    assert_eq!(answer.status, 1, "{}", answer.err);
    let says = "measured.trace: is named twice; name each trace once";
    assert!(answer.err.contains(says), "{}", answer.err);
    assert_eq!(
        answer.out.matches("measured  ").count(),
        3,
        "{}",
        answer.out
    );
    let answer = traxtent(&[&validate[..], &[folder]].concat());
    assert_eq!(answer.status, 0, "{}", answer.err);
    let says = "plain.trace: omitted, because it has no measured times";
    assert!(answer.err.contains(says), "{}", answer.err);

    let parameters = shared_data!("disksim").join("ibm18es.parv");
    let drive = format!("disksim:{}", parameters.display());
    let all = ["validate", "--drive", &drive, "--units=ms", columns, folder];
    assert!(traxtent(&all).err.contains("warning: "));
    fs::remove_file(&measured).unwrap();
    let answer = traxtent(&all);
    assert!(answer.err.contains(says), "{}", answer.err);
    assert!(!answer.err.contains("warning: "), "{}", answer.err);
}
