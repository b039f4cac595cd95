//! Small dense matrices of normal equations.

/// A square matrix. Its values are stored row by row.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    size: usize,
    values: Vec<f64>,
}

impl Matrix {
    pub(crate) fn zero(size: usize) -> Matrix {
        Matrix {
            size,
            values: vec![0.0; size * size],
        }
    }

    pub(crate) fn add(&mut self, row: usize, column: usize, value: f64) {
        self.values[row * self.size + column] += value;
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.size + column]
    }

    pub(crate) fn add_matrix(&mut self, other: &Matrix) {
        for (value, other) in self.values.iter_mut().zip(&other.values) {
            *value += other;
        }
    }

    /// Returns the product with a vector.
    pub(crate) fn times(&self, vector: &[f64]) -> Vec<f64> {
        let rows = self.values.chunks(self.size.max(1));
        rows.map(|row| row.iter().zip(vector).map(|(one, other)| one * other).sum())
            .collect()
    }

    /// Returns the square of a vector's norm under this matrix: the product of the vector, the
    /// matrix and the vector.
    pub(crate) fn square(&self, vector: &[f64]) -> f64 {
        let product = self.times(vector);
        vector
            .iter()
            .zip(product)
            .map(|(one, other)| one * other)
            .sum()
    }

    /// Returns the inverse of a symmetric matrix, by Cholesky decomposition. Returns `None` if the
    /// matrix is not positive definite.
    pub(crate) fn inverse(&self) -> Option<Matrix> {
        let size = self.size;
        let mut factor = Matrix::zero(size);
        for row in 0..size {
            for column in 0..=row {
                let known: f64 = (0..column)
                    .map(|index| factor.at(row, index) * factor.at(column, index))
                    .sum();
                let rest = self.at(row, column) - known;
                let value = if row == column {
                    if rest <= 0.0 {
                        return None;
                    }
                    rest.sqrt()
                } else {
                    rest / factor.at(column, column)
                };
                factor.add(row, column, value);
            }
        }
        let mut inverse = Matrix::zero(size);
        for column in 0..size {
            let mut unit = vec![0.0; size];
            unit[column] = 1.0;
            for row in 0..size {
                let known: f64 = (0..row)
                    .map(|index| factor.at(row, index) * unit[index])
                    .sum();
                unit[row] = (unit[row] - known) / factor.at(row, row);
            }
            for row in (0..size).rev() {
                let known: f64 = (row + 1..size)
                    .map(|index| factor.at(index, row) * unit[index])
                    .sum();
                unit[row] = (unit[row] - known) / factor.at(row, row);
            }
            for (row, value) in unit.into_iter().enumerate() {
                inverse.add(row, column, value);
            }
        }
        Some(inverse)
    }
}

#[cfg(test)]
mod tests {
    use super::Matrix;
    use traxtent_units::Rng;

    /// Is the product of a matrix and its inverse the identity?
    #[test]
    fn inverse_undoes() {
        let mut rng = Rng::new(1);
        for size in 1..12 {
            let rows: Vec<Vec<f64>> = (0..size + 3)
                .map(|_| (0..size).map(|_| rng.fraction() - 0.5).collect())
                .collect();
            let mut matrix = Matrix::zero(size);
            for row in &rows {
                for (one, x) in row.iter().enumerate() {
                    for (other, y) in row.iter().enumerate() {
                        matrix.add(one, other, x * y);
                    }
                }
            }
            let inverse = matrix.inverse().expect("it is positive definite");
            for index in 0..size {
                let mut unit = vec![0.0; size];
                unit[index] = 1.0;
                let found = matrix.times(&inverse.times(&unit));
                for (value, expected) in found.iter().zip(&unit) {
                    assert!((value - expected).abs() < 1e-6, "{size}: {found:?}");
                }
            }
        }
    }

    /// Is the inverse of a singular matrix `None`?
    #[test]
    fn singular_has_no_inverse() {
        let mut matrix = Matrix::zero(2);
        for place in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            matrix.add(place.0, place.1, 1.0);
        }
        assert!(matrix.inverse().is_none());
    }
}
