//! The environment variables of a command that runs while exports are served.

/// Returns the environment variables of exports that have a value: `what` for the first one and, if
/// `values` has several exports, `what_NAME` for each. In names, `_` replaces characters other than
/// ASCII letters and digits.
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
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
            let name: String = name.chars().map(plain).collect();
            variables.push((format!("{what}_{name}"), value));
        }
    }
    variables
}
