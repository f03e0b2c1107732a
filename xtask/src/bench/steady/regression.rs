//! A line through measured points.

/// `y = fixed + slope * x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Regression {
    pub(super) slope: f64,
    pub(super) fixed: f64,
}

impl Regression {
    /// The line with the least squared distances to the points `(x, y)`.
    pub(super) fn through(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points: Vec<(f64, f64)> = points.into_iter().collect();
        let mean =
            |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let both: f64 = points
            .iter()
            .map(|point| (point.0 - x) * (point.1 - y))
            .sum();
        let square: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let slope = both / square;
        Self {
            slope,
            fixed: y - slope * x,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Regression;

    #[test]
    fn lines_go_through_or_between_points() {
        let check = |points: &[(f64, f64)], slope, fixed| {
            assert_eq!(
                Regression::through(points.iter().copied()),
                Regression { slope, fixed }
            );
        };
        check(&[(2.0, 3.0), (6.0, 5.0)], 0.5, 2.0);
        check(&[(1.0, 1.0), (1.0, 3.0), (3.0, 5.0), (3.0, 7.0)], 2.0, 0.0);
    }
}
