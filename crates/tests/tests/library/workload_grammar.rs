//! The workload grammar: accepted texts and tables, and the error messages for refused ones.

use proptest::prelude::*;
use traxtent_workload::{
    ArrivalModel, Distribution, LengthUnit, RequestSizes, StartAlignment, WORKLOAD_KEYS,
    WorkloadKind, WorkloadRegion, WorkloadSpec,
};

fn spec(text: &str) -> WorkloadSpec {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    text.parse::<WorkloadSpec>().expect_err(text).to_string()
}

/// Are binary and decimal units of bytes read, with `k` in either case, and up to the terabyte?
#[test]
fn units_of_bytes() {
    for (size, bytes) in [
        ("4096B", 4096.0),
        ("4k", 4096.0),
        ("4KiB", 4096.0),
        ("4kiB", 4096.0),
        ("4KB", 4000.0),
        ("1.5MiB", 1_572_864.0),
        ("1e3MB", 1e9),
        ("1TB", 1e12),
    ] {
        let RequestSizes::Drawn(size) = spec(&format!("random,size={size}")).size else {
            panic!("{size} is read as the size of a track")
        };
        assert_eq!(size.unit, LengthUnit::Bytes);
        assert_eq!(size.values, Distribution::Constant(bytes));
    }
}

/// Do keys set the fields of a specification?
#[test]
fn keys_are_read() {
    let read = spec(
        "mixed,count=100_000,time=2s,seed=7,read=66%,fua=0.1,size=uniform:4KiB..64KiB,round=4KiB,align=8,offset=1,\
         seq=20%,local=30%,distance=normal:0:40000,lbns=100..2000,outstanding=2,think=exp:5ms",
    );
    assert_eq!(read.kind, WorkloadKind::Mixed);
    assert_eq!(
        (read.count, read.seed, read.read, read.fua),
        (100_000, 7, 0.66, 0.1)
    );
    assert_eq!(read.end_time.map(|time| time.as_ms()), Some(2000.0));
    let RequestSizes::Drawn(size) = &read.size else {
        panic!("{:?}", read.size)
    };
    assert_eq!(
        (size.unit, &size.values),
        (
            LengthUnit::Bytes,
            &Distribution::Uniform {
                low: 4096.0,
                high: 65_536.0
            }
        )
    );
    assert_eq!(read.size_multiple, (LengthUnit::Bytes, 4096));
    assert_eq!(read.align, StartAlignment::Every(LengthUnit::Sectors, 8));
    assert_eq!((read.sequential, read.local), (0.2, 0.3));
    assert!(
        matches!(read.region, WorkloadRegion::Lbns(ref range) if range.start.0 == 100 && range.end.0 == 2000)
    );
    let think = Distribution::Exponential {
        base: 0.0,
        mean: 5.0,
    };
    assert_eq!(
        read.pace,
        ArrivalModel::Closed {
            outstanding: 2,
            think
        }
    );

    let open = spec("random,size=track,align=track,zone=0,arrive=exp:1ms:10ms");
    assert_eq!(
        (open.size, open.align, open.region),
        (
            RequestSizes::Track,
            StartAlignment::Track,
            WorkloadRegion::Zone(0)
        )
    );
    assert_eq!(
        open.pace,
        ArrivalModel::Open {
            gap: Distribution::Exponential {
                base: 1.0,
                mean: 10.0
            }
        }
    );
}

/// Does a TOML table give the same workload as the line?
#[test]
fn toml_equals_the_line() {
    let table = "grammar = 2\nkind = \"random\"\nread = 0.66\nsize = 8\ncount = 100_000\nthink = \"exp:2ms\"\n";
    assert_eq!(
        WorkloadSpec::from_toml(table).unwrap(),
        spec("random,read=66%,size=8,count=100000,think=exp:2ms")
    );
}

/// Is `align` by default `none` in a table of grammar 1, as it was before grammar 2, but not in
/// other tables?
#[test]
fn grammar_1_starts_at_any_sector() {
    let table =
        |more: &str| WorkloadSpec::from_toml(&format!("{more}kind = \"random\"\n")).unwrap();
    assert_eq!(table("grammar = 1\n"), spec("random,align=none"));
    assert_eq!(table("grammar = 2\n"), spec("random"));
    assert_eq!(table(""), spec("random"));
}

/// Does the documentation list every key, and are its examples valid workloads?
#[test]
fn documentation_agrees() {
    let text = include_str!("../../../../docs/reference/workloads.md");
    for (key, _) in WORKLOAD_KEYS {
        assert!(text.contains(&format!("\n| `{key}` |")), "{key}");
    }
    let examples = text.lines().filter(|line| line.contains('='));
    let examples: Vec<_> = examples
        .filter(|line| {
            ["random,", "sequential,", "mixed,"]
                .iter()
                .any(|kind| line.starts_with(kind))
        })
        .collect();
    assert_eq!(examples.len(), 4);
    examples.iter().for_each(|line| drop(spec(line)));
    let toml = text
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    WorkloadSpec::from_toml(toml).unwrap();
}

/// Is each refusal one line that gives the reason, and does the one for an unknown key list all
/// keys?
#[test]
fn refusals_give_the_reason_in_one_line() {
    for (text, expected) in [
        (
            "",
            "workload: unknown kind \"\"; a workload is KIND or KIND,KEY=VALUE,…; the kinds are random, sequential, mixed; the keys are count, time, ",
        ),
        (
            "radnom",
            "workload: unknown kind \"radnom\"; a workload is KIND or KIND,KEY=VALUE,…; the kinds are random, sequential, mixed; the keys are count, time, ",
        ),
        (
            "random,read=1.5",
            "workload: read: \"1.5\": expected a share from 0 to 1, or 0% to 100%",
        ),
        (
            "random,count=0",
            "workload: count: \"0\": expected a whole number of at least 1",
        ),
        (
            "random,outstanding=70000",
            "workload: outstanding: \"70000\": expected a whole number from 1 to 65536",
        ),
        (
            "random,iodepth=32",
            "workload: unknown key \"iodepth\" (did you mean outstanding?); the keys are count, ",
        ),
        ("random,read=1,read=1", "workload: read is given twice"),
        (
            "random,lbns=5..5",
            "expected a range of LBNs that is not empty",
        ),
        ("random,arrive=10", "expected a time with its unit"),
        ("random,arrive=-1ms", "the time must be 0 or more"),
        ("random,arrive=exp:-1ms:10ms", "the base must be 0 or more"),
        (
            "random,arrive=uniform:-5ms..0ms",
            "the upper bound must be more than 0",
        ),
        ("random,size=uniform:8..8", "the range 8..8 is empty"),
        ("random,size=8qB", "\"qB\" is not a unit of length"),
        ("random,size=choice:8@0", "all weights are 0"),
        ("random,size=uniform:1..4KiB", "in sectors, or all in bytes"),
        (
            "random,size=poisson:1e9",
            "a Poisson mean must be at most 10000",
        ),
        ("random,size=gauss:1", "\"gauss\" is not a distribution"),
        (
            "random,arrive=1ms,outstanding=2",
            "open (arrive) or closed (outstanding, think), not both",
        ),
        (
            "random,outstanding=2,arrive=1ms",
            "open (arrive) or closed (outstanding, think), not both",
        ),
        ("random,zone=1,lbns=0..9", "cannot be combined with lbns"),
        (
            "random,seq=0.5",
            "workload: seq: possible only in a mixed workload",
        ),
        (
            "sequential,local=0.5,distance=4",
            "possible only in a random or mixed workload",
        ),
        (
            "mixed,seq=0.7,local=0.7,distance=4",
            "seq 0.7 plus local exceeds 1; reduce one of them",
        ),
        ("random,local=0.5", "workload: local: needs distance"),
        ("random,distance=4", "workload: distance: needs local"),
        (
            "random,offset=4",
            "workload: offset: needs align=track or align=LENGTH",
        ),
        ("random,fast", "workload: \"fast\": expected KEY=VALUE"),
    ] {
        let message = refusal(text);
        assert!(message.contains(expected), "{text}: {message}");
        assert!(
            !message.contains('\n') && message.starts_with("workload: "),
            "{message:?}"
        );
    }
    let unknown = refusal("random,sise=4");
    assert!(
        WORKLOAD_KEYS.iter().all(|key| unknown.contains(key.0)),
        "{unknown}"
    );
}

/// Is a TOML number in another base refused with a message that expects a decimal one?
#[test]
fn toml_numbers_are_decimal() {
    let error = WorkloadSpec::from_toml("kind = \"random\"\nsize = 0x10\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "workload: line 2: size: expected a decimal number or a string, not 0x10"
    );
}

/// Does the error for a wrong TOML table name its line?
#[test]
fn toml_refusals_name_the_line() {
    for (text, line) in [
        ("kind = \"random\"\nread = 7\n", 2),
        ("kind = \"random\"\n\nsise = 7\n", 3),
        ("kind = \"random\"\nread = [1]\n", 2),
        ("kind = \"random\"\nread = \n", 2),
        ("read = 1\n", 1),
        ("grammar = 3\nkind = \"random\"\n", 1),
        ("grammar = 0\nkind = \"random\"\n", 1),
        ("kind = \"random\"\narrive = \"1ms\"\nthink = \"1ms\"\n", 3),
        // Of two bad values, the first in the file is reported, even if its key is later in the
        // alphabet.
        ("kind = \"random\"\nsize = [1]\nread = [1]\n", 2),
        ("kind = \"random\"\nthink = \"soon\"\nread = 7\n", 2),
    ] {
        let message = WorkloadSpec::from_toml(text).expect_err(text).to_string();
        assert!(
            message.starts_with(&format!("workload: line {line}: ")),
            "{text:?}: {message}"
        );
    }
    let comma = WorkloadSpec::from_toml("kind = \"random\"\nread = 0,5\n").unwrap_err();
    let says = "workload: line 2: 0,5 is not a number";
    assert!(comma.to_string().starts_with(says), "{comma}");
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        (1..5000u32).prop_map(|v| v.to_string()),
        (1..500u32, 1..5000u32).prop_map(|(low, more)| format!("uniform:{low}..{}", low + more)),
        (0..900u32, 0..90u32)
            .prop_map(|(mean, deviation)| format!("normal:{mean}:{}", f64::from(deviation) / 7.0)),
        (1..900u32).prop_map(|mean| format!("exp:{}", f64::from(mean) / 3.0)),
        (0..9u32, 1..900u32).prop_map(|(base, mean)| format!("poisson:{base}:{mean}")),
        prop::collection::vec((1..900u32, 1..9u32), 1..5).prop_map(|list| format!(
            "choice:{}",
            list.iter()
                .map(|(v, w)| format!("{v}@{w}"))
                .collect::<Vec<_>>()
                .join("/")
        )),
    ]
}

proptest! {
    /// Does the text of a specification parse back to the same specification?
    #[test]
    fn text_round_trips(
        kind in prop::sample::select(vec!["random", "sequential", "mixed"]),
        count in 1..u64::MAX, seed: u64, read in 0..=1000u32, size in value(), bytes: bool, time in 0..10_000_000u32,
        align in prop::sample::select(vec!["size", "none", "track", "8", "4KiB", "1MiB"]),
        zone in prop::option::of(0..99u32), open: bool, outstanding in 1..65_536u32, gap in 0..100_000u32,
    ) {
        let size = if bytes && !size.contains([':', '.']) { format!("{size}kB") } else { size };
        let mut text = format!(
            "{kind},count={count},seed={seed},read={}%,size={size},align={align},time={time}us",
            f64::from(read) / 10.0
        );
        if let Some(zone) = zone {
            text += &format!(",zone={zone}");
        }
        text += &if open { format!(",arrive=exp:{gap}us") } else { format!(",outstanding={outstanding},think={gap}ns") };
        let first = spec(&text);
        let again = spec(&first.to_string());
        prop_assert_eq!(&first, &again);
        prop_assert_eq!(first.to_string(), again.to_string());
    }

    /// Is any text either accepted or refused, without a panic?
    #[test]
    fn any_text_is_accepted_or_refused(text in "(random|mixed|sequential)?(,?[a-z]{0,6}=?[-0-9a-zA-Z:./@%]{0,12}){0,4}", raw in ".{0,60}") {
        let _ = text.parse::<WorkloadSpec>();
        let _ = raw.parse::<WorkloadSpec>();
        let _ = WorkloadSpec::from_toml(&raw);
        for (key, _) in WORKLOAD_KEYS {
            let _ = WorkloadSpec::new(WorkloadKind::Mixed).set(key, &raw);
        }
    }
}
