//! Bad input: one line, with file, line, key, value and bound, and the right status.

use std::fs;

use super::command::traxtent_in;

/// Is what is wrong with each kind of file said in one line that names the place?
#[test]
fn one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let profile = traxtent_core::profile::builtin::text("atlas10k").unwrap();
    let rpm = 1 + profile
        .lines()
        .position(|line| line.starts_with("rpm ="))
        .unwrap();
    let line = profile.lines().nth(rpm - 1).unwrap();
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
        (
            "w.toml",
            "kind = \"random\"\nsize = 8\ncuont = 5\n".to_owned(),
        ),
        (
            "cut.parv",
            "disksim_global Global {\nInit Seed = 42,\n".to_owned(),
        ),
        ("cut.trace", "R Hit 0 8 600.0 100.0\n".to_owned()),
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
            &["beyond.trace", "99999999999", "ends at LBN"],
        ),
        (&["sim", "atlas10k", "none.trace"], 2, &["none.trace", "0"]),
        (&["sim", "atlas10k", "cut.trace.gz"], 2, &["cut.trace.gz"]),
        (&["sim", "atlas10k", "w.toml"], 2, &["w.toml:3: ", "cuont"]),
        (&["sim", "disksim:cut.parv"], 2, &["cut.parv:"]),
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
            &["no/such/log.csv: cannot be made: there is no folder no/such"],
        ),
        (
            &["sim", "atlas10k", "random", "--plot", "plot.gif"],
            2,
            &["plot.gif", ".svg or .png"],
        ),
        (&["validate", "absent"], 3, &["absent: No such file"]),
        (&["validate", "."], 2, &["cut.parv:"]),
        (
            &["validate", "bad.trace"],
            2,
            &["no bad.parv beside it", "--drive"],
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
            assert!(line.contains(part), "{part:?} in {shown}");
        }
        assert!(answer.out.is_empty(), "{shown}");
    }
}
