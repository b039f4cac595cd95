//! Replacements for figures (`--set`), with lists and ranges of values.

use crate::error::{Result, RunError};

/// The maximum number of points of a sweep.
const POINTS_MAX: usize = 10_000;
/// The maximum number of digits after the decimal point in a range's ends and step.
const DECIMALS_MAX: usize = 20;

/// A key and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    key: String,
    values: Vec<String>,
}

/// One value for each key.
pub type Point = Vec<(String, String)>;

impl Setting {
    /// Parses all settings, each of which is `KEY=VALUE`, `KEY=a,b,c` or `KEY=a..b:step`.
    ///
    /// # Errors
    /// Returns an error if a setting is malformed, if a key is given twice, or if there are more
    /// than 10,000 combinations.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Setting>> {
        let settings: Vec<Setting> = texts
            .iter()
            .map(|text| Setting::parse(text))
            .collect::<Result<_>>()?;
        Setting::check_all(&settings)?;
        Ok(settings)
    }

    /// Returns a setting with these values. The key is a dotted path of the profile, such as
    /// `mechanics.rpm`, or `workload.` and a key of the workload.
    pub fn new(key: impl Into<String>, values: Vec<String>) -> Setting {
        Setting {
            key: key.into(),
            values,
        }
    }

    /// Checks that settings can be combined.
    ///
    /// # Errors
    /// Returns an error if a key is given twice, if it has no value, or if there are more than
    /// 10,000 combinations.
    pub fn check_all(settings: &[Setting]) -> Result<()> {
        for (index, setting) in settings.iter().enumerate() {
            let key = &setting.key;
            if settings[..index].iter().any(|other| other.key == *key) {
                return Err(RunError::at(format!("--set {key}"), "is given twice"));
            }
            if setting.values.is_empty() {
                return Err(RunError::at(format!("--set {key}"), "has no value"));
            }
        }
        let count = settings.iter().try_fold(1usize, |count, setting| {
            count.checked_mul(setting.values.len())
        });
        match count {
            Some(1..=POINTS_MAX) => Ok(()),
            _ => Err(RunError::input(format!(
                "--set: more than {POINTS_MAX} combinations"
            ))),
        }
    }

    /// Parses `KEY=VALUE`, `KEY=a,b,c` or `KEY=a..b:step`.
    fn parse(text: &str) -> Result<Setting> {
        let fail = |why: &str| RunError::input(format!("--set {text}: {why}"));
        let (key, value) = text.split_once('=').ok_or_else(|| {
            fail("expected KEY=VALUE, such as mechanics.rpm=7200 or workload.size=8,16,32")
        })?;
        let mut values = Vec::new();
        for part in split_list(value) {
            if !key.trim().starts_with("workload.") && is_range_without_step(part) {
                return Err(fail(&format!(
                    "a range needs a step, such as {}:1",
                    part.trim()
                )));
            }
            match range(part).map_err(|why| fail(&why))? {
                Some(several) => values.extend(several),
                None => values.push(part.trim().to_owned()),
            }
            if values.len() > POINTS_MAX {
                return Err(fail(&format!("more than {POINTS_MAX} values")));
            }
        }
        if values.iter().any(String::is_empty) {
            return Err(fail("a value is missing"));
        }
        Ok(Setting {
            key: key.trim().to_owned(),
            values,
        })
    }
}

/// Returns all combinations; the last key varies fastest.
pub fn combinations(settings: &[Setting]) -> Vec<Point> {
    let mut points: Vec<Point> = vec![Vec::new()];
    for setting in settings {
        let extend = |point: Point| {
            setting.values.iter().map(move |value| {
                let mut point = point.clone();
                point.push((setting.key.clone(), value.clone()));
                point
            })
        };
        points = points.into_iter().flat_map(extend).collect();
    }
    points
}

/// Splits at commas that are not in brackets or braces.
fn split_list(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Returns whether a text is `a..b`. Only keys of the workload accept this form.
fn is_range_without_step(text: &str) -> bool {
    let is_number = |text: &str| text.trim().parse::<f64>().is_ok();
    text.split_once("..")
        .is_some_and(|(from, to)| is_number(from) && is_number(to))
}

/// Returns the values of `a..b:step`, from `a` up to `b`; `None` if the text does not have this
/// form, with finite numbers.
fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let parsed = text.split_once("..").and_then(|(from, rest)| {
        let (to, step) = rest.split_once(':')?;
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        Some((number(from)?, number(to)?, number(step)?, [from, to, step]))
    });
    let Some((from, to, step, texts)) = parsed else {
        return Ok(None);
    };
    if step <= 0.0 || to < from {
        return Err("a range must ascend, with a step above 0".to_owned());
    }
    // Values have as many decimals as the most precise of the ends and the step, so that
    // 0.1..0.3:0.1 does not contain 0.30000000000000004.
    let decimals = texts.iter().filter_map(|text| text.split_once('.'));
    let decimals = decimals
        .map(|(_, digits)| digits.trim().len())
        .max()
        .unwrap_or(0);
    if decimals > DECIMALS_MAX {
        return Err(format!(
            "more than {DECIMALS_MAX} digits after the decimal point"
        ));
    }
    let count = ((to - from) / step + 1e-9).floor();
    if count >= POINTS_MAX as f64 {
        return Err(format!("more than {POINTS_MAX} values"));
    }
    let value = |index: u32| format!("{:.decimals$}", from + f64::from(index) * step);
    Ok(Some((0..=count as u32).map(value).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        Setting::parse(text).unwrap().values
    }

    /// Are lists and ranges distinguished from single values that resemble them, and are malformed
    /// settings refused?
    #[test]
    fn lists_and_ranges() {
        assert_eq!(values("a=1,2,x"), ["1", "2", "x"]);
        assert_eq!(values("a=0.1..0.3:0.1"), ["0.1", "0.2", "0.3"]);
        assert_eq!(values("a=1..8:3,100"), ["1", "4", "7", "100"]);
        assert_eq!(values("workload.lbns=0..1000"), ["0..1000"]);
        assert_eq!(values("workload.size=uniform:1..8"), ["uniform:1..8"]);
        assert_eq!(values("a=[1,2],[3]"), ["[1,2]", "[3]"]);
        for bad in [
            "a",
            "a=",
            "a=1,,2",
            "a=8..1:1",
            "a=1..8:0",
            "a=0..1:0.0000001",
            "a=1..8",
        ] {
            assert!(Setting::parse(bad).is_err(), "{bad}");
        }
    }

    /// Are lists with too many values refused, and numbers with too many digits?
    #[test]
    fn too_many_values_or_digits() {
        let many = format!("a={}", "0..9999:1,".repeat(1000));
        assert!(Setting::parse(&many).is_err());
        let long = format!("a=0..1:0.{}1", "0".repeat(70_000));
        assert!(Setting::parse(&long).is_err());
    }

    /// Do several settings give all combinations?
    #[test]
    fn several_settings() {
        let settings = Setting::parse_all(&["a=1,2".to_owned(), "b=x,y".to_owned()]).unwrap();
        let shown: Vec<String> = combinations(&settings)
            .iter()
            .map(|point| point.iter().map(|(_, value)| value.as_str()).collect())
            .collect();
        assert_eq!(shown, ["1x", "1y", "2x", "2y"]);
    }
}
