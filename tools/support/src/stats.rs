//! Medians and ranges of measured times.

use std::time::Duration;

/// Measured times of one thing.
#[derive(Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Adds times.
    pub fn extend(&mut self, times: impl IntoIterator<Item = Duration>) {
        self.0.extend(times);
        self.0.sort_unstable();
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the median; of an even number, the upper one.
    pub fn median(&self) -> Option<Duration> {
        self.0.get(self.0.len() / 2).copied()
    }

    /// Renders the median in milliseconds.
    pub fn median_ms(&self) -> String {
        self.median().map_or_else(|| "-".to_owned(), ms)
    }

    /// Renders the least and the greatest in milliseconds.
    pub fn range_ms(&self) -> String {
        match (self.0.first(), self.0.last()) {
            (Some(least), Some(greatest)) => format!("{}-{}", ms(*least), ms(*greatest)),
            _ => "-".to_owned(),
        }
    }
}

/// Renders how many times longer one median is than another.
pub fn ratio(of: &Samples, over: &Samples) -> String {
    match (of.median(), over.median()) {
        (Some(of), Some(over)) if !over.is_zero() => {
            format!("{:.2}", of.as_secs_f64() / over.as_secs_f64())
        }
        _ => "-".to_owned(),
    }
}

fn ms(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(ms: &[u64]) -> Samples {
        let mut samples = Samples::default();
        samples.extend(ms.iter().copied().map(Duration::from_millis));
        samples
    }

    #[test]
    fn medians_ranges_and_ratios() {
        let (short, long) = (samples(&[2, 1, 3]), samples(&[9, 3, 6]));
        assert_eq!(short.median_ms(), "2.000");
        assert_eq!(long.range_ms(), "3.000-9.000");
        assert_eq!(ratio(&long, &short), "3.00");
    }

    #[test]
    fn nothing_measured_is_a_dash() {
        assert_eq!(samples(&[]).median_ms(), "-");
        assert_eq!(ratio(&samples(&[]), &samples(&[1])), "-");
    }
}
