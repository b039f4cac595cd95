//! Tests of texts that are not valid experiments.

use traxtent_experiments::{Experiment, experiments};

/// Is an error in a text reported in one line that names the file and the wrong key or value? Is
/// its line number given if a key is unknown, or a value is unknown or of the wrong type?
#[test]
fn errors_are_one_line_that_names_the_file() {
    let text = &experiments()[1].text;
    assert!(Experiment::parse("T02", text).is_ok());
    let line = |key: &str| 1 + text.lines().position(|line| line.starts_with(key)).unwrap();
    let cases: [(&str, &str, &str, String); 17] = [
        (
            "title =",
            "titel =",
            "T02/experiment.toml:1: unknown field `titel`",
            String::new(),
        ),
        (
            "unit =",
            "units =",
            "unknown field `units`",
            format!(":{}: ", line("unit")),
        ),
        (
            "unit = \"share\"",
            "unit = \"shares\"",
            "unknown variant `shares`",
            format!(":{}: ", line("unit")),
        ),
        (
            "published = 0.73",
            "published = \"much\"",
            "",
            format!(":{}: ", line("published = 0")),
        ),
        (
            "published = 0.73",
            "published = nan",
            "T2: published = [NaN, NaN]",
            String::new(),
        ),
        (
            "published = 0.73",
            "published = [0.8, 0.7]",
            "a range in ascending order",
            String::new(),
        ),
        (
            "absolute = 0.02",
            "absolute = -0.02",
            "T2: within = -0.02",
            String::new(),
        ),
        (
            "absolute = 0.02",
            "about = 0.02",
            "unknown variant `about`",
            format!(":{}: ", line("within")),
        ),
        (
            "scored = true",
            "scored = false",
            "T2: reason = nothing",
            String::new(),
        ),
        ("scored = true", "", "missing field `scored`", String::new()),
        (
            "id = \"T2\"",
            "id = \"T20\"",
            "id = T20: must begin with the directory's number",
            String::new(),
        ),
        (
            "scored = true",
            "scored = true\nnearest_of = 0",
            "nearest_of = 0: must be 1 to 16",
            String::new(),
        ),
        (
            "\"atlas10k2\"",
            "\"atlas10k9\"",
            "drive = atlas10k9: no built-in drive",
            String::new(),
        ),
        (
            "\"atlas10k2\"",
            "[]",
            "drive = []: must not be empty",
            String::new(),
        ),
        (
            "efficiency-of-a-track",
            "guess",
            "measure = guess: no measurement",
            String::new(),
        ),
        (
            "seeds = [1, 2, 3, 4, 5]",
            "seeds = []",
            "seeds = []: must not be empty",
            String::new(),
        ),
        (
            "efficiency-of-a-track",
            "efficiency-peaks",
            "figure = efficiency-peaks: this measurement has no figure",
            String::new(),
        ),
    ];
    for (from, to, says, place) in cases {
        assert!(text.contains(from), "{from}");
        let error = Experiment::parse("T02", &text.replacen(from, to, 1))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(says) && error.contains(&place),
            "{to}: {error}"
        );
        assert!(
            error.starts_with("experiments/T02/experiment.toml:") && !error.contains('\n'),
            "{error}"
        );
    }
    let twice = text.clone() + &text[text.find("[[claim]]").unwrap()..];
    let error = Experiment::parse("T02", &twice).unwrap_err().to_string();
    assert!(error.contains("id = T2: must be unique"), "{error}");
}

/// Is a directory refused if its name is not a paper's letter and two digits, or if its claims have
/// another number?
#[test]
fn directory_names_are_checked() {
    let text = &experiments()[1].text;
    for folder in ["", "T", "T2", "T00", "t02", "02", "T002", "TT2", "Ä02"] {
        let error = Experiment::parse(folder, text).unwrap_err().to_string();
        assert!(error.contains("two digits"), "{folder}: {error}");
    }
    assert!(
        Experiment::parse("T03", text)
            .unwrap_err()
            .to_string()
            .contains("id = T2")
    );
}
