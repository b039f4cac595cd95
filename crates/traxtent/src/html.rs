//! HTML text.

/// Escapes text so that a browser shows it unchanged.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Escapes prose, and marks up text between backticks as code.
pub(crate) fn prose(text: &str) -> String {
    let mut html = String::new();
    for (index, part) in text.split('`').enumerate() {
        let part = escape(part);
        match index % 2 {
            0 => html += &part,
            _ => html += &format!("<code>{part}</code>"),
        }
    }
    html
}

/// Returns a verdict with its symbol, so that it does not rely on its colour alone; `None` if the
/// word is not a verdict.
pub(crate) fn verdict(word: &str) -> Option<String> {
    let symbol = match word {
        "met" => '✓',
        "missed" => '✗',
        "reported" => '○',
        _ => return None,
    };
    Some(format!("{symbol} {word}"))
}

#[cfg(test)]
mod tests {
    /// Is text between backticks marked up as code, and are HTML's special characters escaped?
    #[test]
    fn prose() {
        let html = super::prose("run `a <b>` & see");
        assert_eq!(html, "run <code>a &lt;b&gt;</code> &amp; see");
    }
}
