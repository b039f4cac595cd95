//! The environment variables of a command that runs while exports are served.

/// Returns the name of an export as a part of a variable's name, in which `_` replaces characters
/// other than ASCII letters and digits.
pub(super) fn variable_part(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(plain).collect()
}

/// Returns the environment variables of exports that have a value: `what` for the first one and, if
/// `values` has several exports, `what_NAME` for each ([`variable_part`]).
pub(super) fn variables<'a>(
    what: &str,
    values: impl ExactSizeIterator<Item = (&'a str, Option<String>)>,
) -> Vec<(String, String)> {
    let several = values.len() > 1;
    let mut variables = Vec::new();
    for (name, value) in values {
        let Some(value) = value else { continue };
        if variables.is_empty() {
            variables.push((what.to_owned(), value.clone()));
        }
        if several {
            variables.push((format!("{what}_{}", variable_part(name)), value));
        }
    }
    variables
}
