//! Numbers with a noun, for messages.

use std::fmt;

/// A number with its noun, in the singular for 1 and in the plural otherwise: `1 sector`, `8
/// sectors`.
///
/// The plural is the singular with an `s`.
#[derive(Clone, Copy, Debug)]
pub struct Count<N>(pub N, pub &'static str);

impl<N: fmt::Display> fmt::Display for Count<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0.to_string();
        let ending = if number == "1" { "" } else { "s" };
        write!(f, "{number} {}{ending}", self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is the noun in the singular for the number 1 only?
    #[test]
    fn only_one_is_singular() {
        let shown = |number: u64| Count(number, "spare sector").to_string();
        assert_eq!(shown(0), "0 spare sectors");
        assert_eq!(shown(1), "1 spare sector");
        assert_eq!(shown(2), "2 spare sectors");
        assert_eq!(shown(11), "11 spare sectors");
    }
}
