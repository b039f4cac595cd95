//! Numbers with a decimal comma, which no file of ours can contain.

/// Returns the problem if a line assigns a number with a comma, such as `ms = 0,5`. Such a line is
/// not valid TOML, but a parser's own error does not say why.
pub fn decimal_comma(line: &str) -> Option<String> {
    let number = line.split('=').skip(1).find_map(|value| {
        let value = value.trim_start();
        let is_digit = |c: char| c.is_ascii_digit();
        let whole = value.trim_start_matches(['-', '+']);
        let whole = whole.trim_start_matches(|c| is_digit(c) || c == '.');
        let rest = whole.strip_prefix(',')?.trim_start_matches(is_digit);
        let number = &value[..value.len() - rest.len()];
        let is_number = number.ends_with(is_digit) && !number.starts_with(',');
        is_number.then_some(number)
    })?;
    Some(format!(
        "{number} is not a number, since it contains a comma; decimals follow a point, as in 0.5"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is a number with a comma found anywhere on a line, and no list or table taken for one?
    #[test]
    fn decimal_commas_are_found() {
        for (line, number) in [
            ("ms = 0,5", Some("0,5")),
            ("ms=-0,25 # a comment", Some("-0,25")),
            ("a = { b = 1.5, sectors = 63,0 }", Some("63,0")),
            ("rpm = 10,025.0", Some("10,025")),
            ("rpm = 10.025,5", Some("10.025,5")),
            ("a = [1,5]", None),
            ("a = {b = 1,c = 2}", None),
            ("a = ,5", None),
            ("1,5", None),
        ] {
            let found = decimal_comma(line);
            let shown = found.as_deref().and_then(|text| text.split(' ').next());
            assert_eq!(shown, number, "{line}");
        }
    }
}
