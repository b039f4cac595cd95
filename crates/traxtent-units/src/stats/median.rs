//! Medians of small samples.

/// Returns the values in ascending order.
pub fn ascending(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Returns the median; the mean of the two middle values if there is an even number of them.
///
/// # Panics
/// Panics if there are no values.
pub fn median(values: &[f64]) -> f64 {
    let values = ascending(values.iter().copied());
    let half = values.len() / 2;
    if values.len() % 2 == 1 {
        values[half]
    } else {
        (values[half - 1] + values[half]) / 2.0
    }
}

/// Returns the median, or the upper of the two middle values, which is always a measured value;
/// `None` if there are no values.
pub fn upper_median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values = ascending(values);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do the two medians agree for odd numbers of values, and differ as described for even ones?
    /// Is there no upper median without values?
    #[test]
    fn odd_and_even_numbers_of_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(upper_median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(upper_median([4.0, 1.0, 2.0, 3.0]), Some(3.0));
        assert_eq!(upper_median([]), None);
    }
}
