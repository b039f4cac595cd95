//! Errors of the operating system as text.

use std::io;

/// Returns the system's message without its number: "No such file or directory" rather than "No
/// such file or directory (os error 2)".
pub fn system_message(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is the number removed, and does a message without a number stay as it is?
    #[test]
    fn numbers_are_removed() {
        let error = io::Error::from_raw_os_error(2);
        assert!(error.to_string().contains("os error 2"));
        assert_eq!(system_message(&error), "No such file or directory");
        assert_eq!(system_message(&io::Error::other("no medium")), "no medium");
    }
}
