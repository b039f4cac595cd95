//! Tests of paper P's claims about track partitions.

use traxtent_experiments::{Selection, Verdict, run};

/// Are exactly the known claims missed, over five seeds and with the measured traces?
#[test]
fn exactly_the_known_claims_are_missed() {
    let folder = testkit::shared_data!("disksim");
    let plan = traxtent_experiments::RunPlan {
        seeds: traxtent_experiments::Seeds::First(5),
        traces: Some(folder),
        ..crate::plan()
    };
    // P7 simulates a day of requests, which takes minutes to run. It is left to `traxtent lab run
    // P7`.
    let ids = [1, 2, 3, 4, 5, 6].map(|number| format!("P{number}"));
    let selection = Selection::of(&ids).unwrap();
    let outcome = run(&selection.experiments(), &plan, &|| ()).unwrap();
    let findings = outcome.findings.iter();
    let missed = findings.filter(|finding| finding.verdict() == Verdict::Missed);
    let missed: Vec<&str> = missed.map(|finding| &finding.claim.id[..]).collect();
    assert_eq!(missed, ["P1a5", "P1b4", "P1b5", "P1c4", "P1c5", "P3b"]);
}
