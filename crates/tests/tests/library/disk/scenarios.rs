//! Faults and scenarios as text.

use traxtent_model::disk::{Fault, Scenario};

/// Does the text of every fault parse back to it, on one line and in a scenario, and does
/// `Fault::NAMES` list exactly their names?
#[test]
fn faults_round_trip() {
    let lines = [
        "power-cut",
        "power-cut,seed=18446744073709551615,tearing=512,for=1.5 s",
        "latent-error,lbn=1000,sectors=8,revolutions=2",
        "slow-sector,lbn=5,revolutions=100",
        "grown-defect,lbn=7",
        "stall,for=90 min",
        "vanish,for=7 ps",
        "lying-flush",
        "lying-fua,for=2 s",
    ];
    let mut named = Vec::new();
    let mut text = "seed = 9\nfaults = [".to_owned();
    for line in lines {
        let fault: Fault = line
            .parse()
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(fault.to_string().parse(), Ok(fault), "{fault}");
        named.push(fault.name());
        let fields: Vec<String> = fault
            .fields()
            .iter()
            .map(|(key, value)| format!(", {key} = \"{value}\""))
            .collect();
        text += &format!(
            "{{ at = \"1 s\", fault = \"{}\"{} }},",
            fault.name(),
            fields.concat()
        );
    }
    let scenario = Scenario::from_toml(&(text + "]")).unwrap();
    assert_eq!(scenario.faults.len(), lines.len());
    assert_eq!(Scenario::from_toml(&scenario.to_toml()), Ok(scenario));
    named.dedup();
    assert_eq!(named, Fault::NAMES);
}

/// Is an error in a scenario reported with its line and the reason, and an error in a single fault
/// with the reason?
#[test]
fn bad_scenarios_name_the_error() {
    let entry = |entry: &str| format!("seed = 1\nfaults = [\n{entry}\n]");
    for (text, message) in [
        (
            "seed = ",
            "line 1: string values must be quoted, expected literal string",
        ),
        (
            "seeds = 1",
            "line 1: seeds: not a key of a scenario; its keys are seed, faults",
        ),
        (
            "\nseed = -1",
            "line 2: seed: expected a decimal integer, 0 or greater",
        ),
        ("faults = 1", "line 1: faults: expected a list of tables"),
        (
            &entry("{ at = \"1 s\", fault = \"flood\" }"),
            "line 3: faults[0].fault: \"flood\" is not a fault; the faults are power-cut, latent-error, \
             slow-sector, grown-defect, stall, vanish, lying-flush, lying-fua",
        ),
        (
            &entry("\"stall\""),
            "line 3: faults[0]: expected a table such as { at = \"2 s\", fault = \"stall\", \
             for = \"1 s\" }, not string",
        ),
        (
            &entry("{ fault = \"stall\" }"),
            "line 3: faults[0].at: missing",
        ),
        (
            &entry("{ at = \"1 s\" }"),
            "line 3: faults[0].fault: missing",
        ),
        (
            &entry("{ at = \"1\", fault = \"stall\", for = \"1 s\" }"),
            "line 3: faults[0].at: \"1\": expected a time up to 100 days with its unit \
             (h, min, s, ms, us, ns, ps), such as 1.5 s",
        ),
        (
            &entry("{ at = \"1 s\", fault = \"stall\" }"),
            "line 3: faults[0].for: missing; stall requires it",
        ),
        (
            &entry("{ at = \"1 s\", fault = \"slow-sector\", lnb = 5, revolutions = 2 }"),
            "line 3: faults[0].lnb: not a key of slow-sector, which requires lbn",
        ),
        (
            &entry("{ at = \"1 s\", fault = \"grown-defect\", lbn = 1, colour = 2 }"),
            "line 3: faults[0].colour: not a key of grown-defect; its keys are lbn, sectors",
        ),
        (
            &entry("{ at = \"1 s\", fault = \"grown-defect\", lbn = 1, sectors = 0 }"),
            "line 3: faults[0].sectors: \"0\": expected a whole number from 1 to 64",
        ),
        (
            &entry("{ at = \"1 s\", fault = \"power-cut\", tearing = \"1\" }"),
            "line 3: faults[0].tearing: \"1\": expected physical or 512",
        ),
        (
            &entry("{ at = \"1 s\", fault = \"power-cut\", tearing = true }"),
            "line 3: faults[0].tearing: expected a decimal integer or a string, not boolean",
        ),
        (
            &entry("{ at = \"1 s\", fault = \"grown-defect\", lbn = 0x10 }"),
            "line 3: faults[0].lbn: expected a decimal integer or a string, not 0x10",
        ),
        (
            &entry("{ at = \"1 s\", fault = \"grown-defect\", lbn = 1.5 }"),
            "line 3: faults[0].lbn: expected a decimal integer or a string, not float",
        ),
        (
            &entry(
                "{ at = \"2 s\", fault = \"power-cut\" },\n{ at = \"1 s\", fault = \"power-cut\" }",
            ),
            "line 4: faults[1].at: is earlier than the entry above it; the list must be in order of time",
        ),
        // In an entry of several lines, the line is that of the key.
        (
            "[[faults]]\nat = \"1 s\"\nfault = \"grown-defect\"\nlbn = 1\n\n[[faults]]\nat = \"2 s\"\n\
             fault = \"grown-defect\"\nsectors = 0\nlbn = 1\n",
            "line 9: faults[1].sectors: \"0\": expected a whole number from 1 to 64",
        ),
        (
            "[[faults]]\nat = \"1 s\"\nfault = \"power-cut\"\ntearing = true\n",
            "line 4: faults[0].tearing: expected a decimal integer or a string, not boolean",
        ),
        (
            "[[faults]]\nat = \"1 s\"\nfault = \"grown-defect\"\nlbn = 1\ncolour = 2\n",
            "line 5: faults[0].colour: not a key of grown-defect; its keys are lbn, sectors",
        ),
        (
            "[[faults]]\n# A comment.\nfault = \"flood\"\nat = \"1 s\"\n",
            "line 3: faults[0].fault: \"flood\" is not a fault; the faults are power-cut, latent-error, \
             slow-sector, grown-defect, stall, vanish, lying-flush, lying-fua",
        ),
        // A missing key has no line, so the line is that of the entry.
        (
            "seed = 1\n[[faults]]\nat = \"1 s\"\nfault = \"stall\"\n",
            "line 2: faults[0].for: missing; stall requires it",
        ),
    ] {
        let error = Scenario::from_toml(text).unwrap_err().to_string();
        assert_eq!(error, message, "{text}");
    }
    for (line, message) in [
        (
            "",
            "fault: \"\" is not a fault; the faults are power-cut, latent-error, slow-sector, grown-defect, stall, vanish, lying-flush, lying-fua",
        ),
        (
            "stall,for",
            "for: expected key=value, with times as one word, such as for=3s",
        ),
        ("stall,for=1 s,for=2 s", "for: given twice"),
    ] {
        assert_eq!(line.parse::<Fault>().unwrap_err().to_string(), message);
    }
}
