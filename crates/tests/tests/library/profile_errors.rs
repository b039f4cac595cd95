//! Values out of bounds, unknown keys, values without provenance: each reported in one line.

use traxtent_model::drive::Drive;
use traxtent_model::profile::{
    OriginKind, Profile, ProfileError, Provenance, Scheduler, ScsiSpec, builtin,
};

use crate::drive::tiny::{tiny, tiny_with};

fn base() -> Profile {
    builtin("atlas10k2").unwrap()
}

/// Can values of each type be set by their paths?
#[test]
fn values_are_set_by_their_paths() {
    assert_eq!(
        base()
            .with_value("mechanics.rpm", "15000")
            .unwrap()
            .mechanics
            .unwrap()
            .rpm,
        15_000.0
    );
    assert_eq!(
        base().with_value("queue.depth", "7").unwrap().queue.depth,
        7
    );
    assert!(
        !base()
            .with_value("access.zero_latency_read", "false")
            .unwrap()
            .access
            .zero_latency_read
    );
    assert_eq!(
        base()
            .with_value("queue.scheduler", "c-look")
            .unwrap()
            .queue
            .scheduler,
        Scheduler::CLook
    );
    let aged = base()
        .with_value("queue.scheduler", "{ aged-sptf = { weight = 0.5 } }")
        .unwrap();
    assert_eq!(aged.queue.scheduler, Scheduler::AgedSptf { weight: 0.5 });
    let fewer = base()
        .with_value("geometry.zones.3.sectors_per_track", "400")
        .unwrap();
    assert_ne!(fewer.geometry, base().geometry);
}

/// Does the error for a word without quotes name its key, even if it begins like true or false?
#[test]
fn words_without_quotes_name_their_key() {
    let text = builtin::text("atlas10k2").unwrap();
    let (start, rest) = text.split_once("\nrpm = ").unwrap();
    let (_, end) = rest.split_once('\n').unwrap();
    for word in ["fast", "tall", "slow", "15000;"] {
        let changed = format!("{start}\nrpm = {word}\n{end}");
        let error = Profile::from_toml(&changed).unwrap_err().to_string();
        assert!(error.contains("rpm: expected a number"), "{word}: {error}");
    }
}

/// Can SCSI properties be set on a profile that does not state them, and do they survive a round
/// trip through text? Does setting a default value leave the profile unchanged? Are SCSI values out
/// of bounds refused?
#[test]
fn the_scsi_table_may_be_left_out() {
    let profile = base();
    assert_eq!(profile.scsi, ScsiSpec::default());
    assert!(!profile.to_toml().contains("[scsi]"));
    assert_eq!(
        profile.with_value("scsi.translate_ms", "2.0").unwrap(),
        profile
    );
    let silent = profile.with_value("scsi.translates", "false").unwrap();
    assert!(!silent.scsi.translates && silent.scsi.defect_lists);
    assert_eq!(Profile::from_toml(&silent.to_toml()).unwrap(), silent);
    assert_eq!(
        silent.with_value("scsi.serial", "B7").unwrap().scsi.serial,
        "B7"
    );
    // Values that a profile's text sets without an origin are assumed.
    let text = profile
        .to_toml()
        .replace("[queue]", "[scsi]\ntranslate_ms = 3.5\n\n[queue]");
    let read = Profile::from_toml(&text).unwrap();
    let origin = read.provenance.of("scsi.translate_ms").unwrap();
    assert_eq!(
        (origin.kind, origin.note),
        (OriginKind::Assumed, "no origin is stated")
    );
    let text = text.replace("[provenance]", "[provenance]\nscsi = \"assumed: a guess\"");
    assert_eq!(Profile::from_toml(&text).unwrap().scsi.translate_ms, 3.5);
    for (key, value, bound) in [
        ("scsi.translate_ms", "-1.0", "from 0 to 10000"),
        (
            "scsi.vendor",
            "NINECHARS",
            "up to 8 ASCII characters, without leading or trailing blanks",
        ),
        (
            "scsi.serial",
            " 1",
            "up to 32 ASCII characters, without leading or trailing blanks",
        ),
        (
            "scsi.product",
            "\u{fc}",
            "up to 16 ASCII characters, without leading or trailing blanks",
        ),
    ] {
        let error = profile.with_value(key, value).unwrap_err().to_string();
        assert!(error.starts_with(key) && error.ends_with(bound), "{error}");
    }
}

/// Does setting any value to itself change nothing?
#[test]
fn a_value_set_to_itself_changes_nothing() {
    let profile = base();
    let table = toml::Value::try_from(&profile).unwrap();
    for path in profile.value_paths() {
        let value = path.split('.').fold(&table, |place, key| &place[key]);
        let text = match value {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        assert_eq!(
            profile.with_value(&path, &text).unwrap(),
            profile,
            "{path} = {text}"
        );
    }
}

/// Does each refusal name the key in one line, and for a known key also the value and the bound?
#[test]
fn refusals_name_key_value_and_bound() {
    for (key, value, message) in [
        (
            "mechanics.rpm",
            "99",
            "mechanics.rpm = 99: must be from 100 to 100000",
        ),
        (
            "mechanics.rpm",
            "NaN",
            "mechanics.rpm = NaN: must be from 100 to 100000",
        ),
        (
            "mechanics.rpm",
            "fast",
            "mechanics.rpm = fast: must be a number",
        ),
        (
            "mechanics.head_switch_ms",
            "-0.1",
            "mechanics.head_switch_ms = -0.1: must be from 0 to 10000",
        ),
        (
            "queue.depth",
            "0",
            "queue.depth = 0: must be from 1 to 65536",
        ),
        (
            "queue.depth",
            "1.5",
            "queue.depth = 1.5: must be a whole number",
        ),
        (
            "access.zero_latency_read",
            "yes",
            "access.zero_latency_read = yes: must be true or false",
        ),
        (
            "sector.logical_bytes",
            "520",
            "sector.logical_bytes = 520: must be 512 or 4096",
        ),
        (
            "sector.logical_bytes",
            "4096",
            "sector.physical_bytes = 512: must be at least the logical size",
        ),
        (
            "sector.lowest_aligned_lbn",
            "1",
            "sector.lowest_aligned_lbn = 1: must be 0",
        ),
        (
            "cache.segments",
            "0",
            "cache.segments = 0: must be from 1 to 1048576",
        ),
        (
            "cache.write_segments",
            "9",
            "cache.write_segments = 9: must be from 1 to 8",
        ),
        (
            "cache.segment_sectors",
            "0",
            "cache.segment_sectors = 0: must be from 1 to 1073741824",
        ),
        (
            "cache.read_watermark",
            "1.01",
            "cache.read_watermark = 1.01: must be from 0 to 1",
        ),
        (
            "overheads.read_completion_ms",
            "inf",
            "overheads.read_completion_ms = inf: must be from 0 to 10000",
        ),
        (
            "bus.read_sector_ms",
            "-1",
            "bus.read_sector_ms = -1: must be from 0 to 10000",
        ),
        (
            "mechanics.seek.read",
            "[[3, 1.0], [3, 2.0]]",
            "mechanics.seek.read[1] distance = 3: must be from 4 to 16777216",
        ),
        (
            "name",
            "two words",
            "name = two words: must be letters, digits, '-' and '_'",
        ),
        ("format", "2", "format = 2: must be 1"),
        (
            "mechanics.speed",
            "1",
            "mechanics.speed is not a key of the profile (see `traxtent drives show`)",
        ),
        (
            "geometry.zones.99.sectors_per_track",
            "1",
            "geometry.zones.99.sectors_per_track is not a key of the profile (see `traxtent drives show`)",
        ),
    ] {
        assert_eq!(
            base().with_value(key, value).unwrap_err().to_string(),
            message
        );
    }
    // Key and value precede the message even if another crate words it.
    for (key, value) in [
        ("queue.scheduler", "elevator"),
        ("cache.write_back", "3"),
        ("queue.depth", "-1"),
    ] {
        let message = base().with_value(key, value).unwrap_err().to_string();
        assert!(
            message.starts_with(&format!("{key} = {value}: ")),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

/// Is a profile that is not TOML, or has an unknown key or a value of the wrong type, refused in
/// one line? Does the error name the line, except for an unknown key?
#[test]
fn syntax_errors_name_their_line() {
    let text = base().to_toml();
    let line = text
        .lines()
        .position(|line| line.starts_with("rpm"))
        .unwrap()
        + 1;
    for wrong in ["rmp = 1.0", "rpm = \"fast\"", "rpm = ", "rpm = 9,5"] {
        let text = text.replace(text.lines().nth(line - 1).unwrap(), wrong);
        let error = Profile::from_toml(&text).unwrap_err();
        assert!(matches!(error, ProfileError::Syntax { .. }), "{error}");
        assert!(error.to_string().lines().count() == 1, "{error}");
        let is_comma = error.to_string().contains("9,5 is not a number");
        assert_eq!(is_comma, wrong.contains(','), "{error}");
        if wrong != "rmp = 1.0" {
            assert!(
                error.to_string().starts_with(&format!("line {line}: ")),
                "{line}: {error}"
            );
        }
    }
}

/// Does an error in a seek curve of several lines name the line of the wrong key, although serde
/// reads the table without the positions of its keys? Is a missing key at the line of the table?
#[test]
fn errors_in_a_seek_curve_name_their_line() {
    let seek = "curve = \"hpl\"\ndivision = 400\nroot_constant_ms = 1.0\nroot_factor_ms = 0.1\n\
                line_constant_ms = 2.0\nline_factor_ms = 0.01\nfirst_ms = [0.5]\n";
    let number = "invalid type: string \"x\", expected a number";
    for (line, wrong, problem) in [
        (
            3,
            "division = \"x\"",
            "invalid type: string \"x\", expected a whole number",
        ),
        (4, "root_constant_ms = \"x\"", number),
        (6, "line_constant_ms = \"x\"", number),
        (7, "line_factor_ms = 1.0\nms = 1.0", "unknown field `ms`"),
        (8, "first_ms = [\n\"x\"]", number),
        (7, "", "missing field `line_factor_ms`"),
    ] {
        let mut lines: Vec<&str> = seek.lines().collect();
        lines[line - 2] = wrong;
        let line = match problem {
            _ if wrong.is_empty() => 1,
            _ if problem.starts_with("unknown") => line + 1,
            _ => line,
        };
        let text = format!(
            "[mechanics.seek]\n{}\n[mechanics]\nrpm = 1e4\n",
            lines.join("\n")
        );
        let error = Profile::from_toml(&text).unwrap_err().to_string();
        let start = format!("line {line}: {problem}");
        assert!(error.starts_with(&start), "{start}, not {error}");
    }
}

/// Is a value without provenance refused? Is a provenance entry refused if it covers no value, or
/// has no source or an unknown kind of source? Does the longest matching path apply?
#[test]
fn every_value_has_an_origin() {
    let with = |entries: &[(&str, &str)]| {
        let entries = entries
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()));
        tiny_with(|p| p.provenance = Provenance(entries.collect())).check()
    };
    let all = ("", "assumed: x");
    assert_eq!(with(&[all]), Ok(()));
    assert!(matches!(
        with(&[("mechanics", "assumed: x")]),
        Err(ProfileError::MissingProvenance { .. })
    ));
    for (key, value, message) in [
        (
            "mechanics.rmp",
            "assumed: x",
            "provenance.\"mechanics.rmp\" = \"assumed: x\": covers no value of this profile; remove this line of [provenance]",
        ),
        (
            "mechanics.rp",
            "assumed: x",
            "provenance.\"mechanics.rp\" = \"assumed: x\": covers no value of this profile; remove this line of [provenance]",
        ),
        (
            "mechanics.rpm",
            "guessed: x",
            "provenance.\"mechanics.rpm\" = \"guessed: x\": must be \"measured: \", \"published: \", \"fitted: \" or \"assumed: \" and a note",
        ),
    ] {
        assert_eq!(with(&[all, (key, value)]).unwrap_err().to_string(), message);
    }
    assert!(
        with(&[all, ("mechanics.rpm", "measured: ")]).is_err(),
        "an origin without a source is accepted"
    );
    let longest = Provenance(
        [
            ("mechanics", "assumed: a"),
            ("mechanics.seek", "fitted: b"),
            ("mechanics.seek.read", "measured: c"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
    );
    for (path, kind, note) in [
        ("mechanics.rpm", OriginKind::Assumed, "a"),
        ("mechanics.seek.curve", OriginKind::Fitted, "b"),
        ("mechanics.seek.read", OriginKind::Measured, "c"),
    ] {
        let origin = longest.of(path).unwrap();
        assert_eq!((origin.kind, origin.note), (kind, note));
    }
    assert_eq!(longest.of("mechanic"), None);
}

/// Is a minimal profile accepted, with everything that it does not state as an assumed default?
#[test]
fn a_minimal_profile_is_complete() {
    let text = r#"
        [mechanics]
        rpm = 7200
        seek = { curve = "three-point-curve", single_ms = 1, average_ms = 8.5, full_ms = 16 }
        [cache]
        segments = 4
        [geometry]
        surfaces = 4
        cylinders = 1000
        zones = [{ first_cylinder = 0, last_cylinder = 999, sectors_per_track = 500 }]
        [provenance]
        "mechanics.rpm" = "published: the label"
    "#;
    let profile = Profile::from_toml_named(text, "mine").unwrap();
    assert_eq!(
        (profile.name.as_str(), profile.model.as_str()),
        ("mine", "mine")
    );
    for (key, kind, note) in [
        ("mechanics.rpm", OriginKind::Published, "the label"),
        (
            "mechanics.seek.full_ms",
            OriginKind::Assumed,
            "no origin is stated",
        ),
        ("cache.segments", OriginKind::Assumed, "no origin is stated"),
        (
            "cache.enabled",
            OriginKind::Assumed,
            "default of the profile format",
        ),
        (
            "bus.hold.always",
            OriginKind::Assumed,
            "default of the profile format",
        ),
    ] {
        let origin = profile.provenance.of(key).unwrap();
        assert_eq!((origin.kind, origin.note), (kind, note), "{key}");
    }
    assert!(Drive::new(&profile).is_ok());
    assert_eq!(Profile::from_toml(&profile.to_toml()), Ok(profile.clone()));
    assert_eq!(
        Profile::from_toml(&profile.to_commented_toml("x")),
        Ok(profile)
    );
}

/// Is the error of a text that is no value of the key's type not one of a value out of bounds?
#[test]
fn a_wrong_type_is_not_out_of_bounds() {
    for (key, value) in [
        ("mechanics.rpm", "fast"),
        ("queue.depth", "1.5"),
        ("queue.depth", "-1"),
        ("access.zero_latency_read", "yes"),
        ("queue.scheduler", "aged-sptf"),
    ] {
        let error = base().with_value(key, value).unwrap_err();
        let is_of_type = matches!(error, ProfileError::WrongType { .. });
        assert!(is_of_type, "{key} = {value}: {error:?}");
    }
    let error = base().with_value("mechanics.rpm", "99").unwrap_err();
    assert!(matches!(error, ProfileError::OutOfBounds { .. }));
}

/// Is a profile checked before a drive is built from it?
#[test]
fn a_drive_is_not_built_from_a_bad_profile() {
    let bad = tiny_with(|p| p.queue.depth = 0);
    assert!(matches!(
        Drive::new(&bad),
        Err(ProfileError::OutOfBounds { .. })
    ));
    let bad = tiny_with(|p| p.geometry.zones.clear());
    assert!(matches!(Drive::new(&bad), Err(ProfileError::Geometry(_))));
    assert!(Drive::new(&tiny()).is_ok());
}
