//! What is gathered while a run is under way.

use std::{cmp::Reverse, collections::HashMap, time::Duration};

use serde_json::{Value, json};

use crate::report::rounded;

/// Kinds of failures that are told apart.
const FAILURE_KINDS: usize = 40;
/// Kinds of failures that are shown.
const FAILURE_SAMPLES: usize = 4;
/// Longest text of one.
const FAILURE_TEXT: usize = 240;

/// Times taken, in whole microseconds.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Vec<u32>);

impl Latencies {
    pub(crate) fn record(&mut self, took: Duration) {
        self.0
            .push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The percentiles that are reported, in milliseconds, each with its key.
    pub(crate) fn percentiles(&mut self) -> [(&'static str, f64); 5] {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        let at = |per_mille: usize| {
            let index = (self.0.len() * per_mille / 1000).min(last);
            self.0
                .get(index)
                .map_or(0.0, |&micros| f64::from(micros) / 1000.0)
        };
        [
            ("p50_ms", at(500)),
            ("p90_ms", at(900)),
            ("p99_ms", at(990)),
            ("p999_ms", at(999)),
            ("max_ms", at(1000)),
        ]
    }
}

/// Failures by what they said. Digits are struck out, so that failures which differ in an id
/// count as one kind.
#[derive(Debug, Default)]
pub(crate) struct Failures(HashMap<String, u64>);

impl Failures {
    pub(crate) fn record(&mut self, failure: &impl ToString) {
        let text = failure.to_string();
        let struck = |c: char| if c.is_ascii_digit() { '#' } else { c };
        let kind: String = text.chars().map(struck).take(FAILURE_TEXT).collect();
        let kind = if self.0.len() < FAILURE_KINDS || self.0.contains_key(&kind) {
            kind
        } else {
            "others".to_owned()
        };
        *self.0.entry(kind).or_default() += 1;
    }

    /// Adds the failures of another part of the run.
    pub(crate) fn merge(&mut self, others: Self) {
        for (kind, count) in others.0 {
            *self.0.entry(kind).or_default() += count;
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The most frequent ones.
    pub(crate) fn samples(&self) -> Value {
        let mut kinds: Vec<_> = self.0.iter().collect();
        kinds.sort_by_key(|(_, count)| Reverse(**count));
        kinds
            .iter()
            .take(FAILURE_SAMPLES)
            .map(|(kind, count)| json!([count, kind]))
            .collect()
    }
}

/// Something a second, or 0 where no time went by.
pub(crate) fn rate(count: u64, span: Duration) -> f64 {
    if span.is_zero() {
        0.0
    } else {
        rounded(count as f64 / span.as_secs_f64(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_recorded() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentiles().map(|(_, ms)| ms), [0.0; 5]);
        for ms in (1..=1000).rev() {
            latencies.record(Duration::from_millis(ms));
        }
        let ms = latencies.percentiles().map(|(_, ms)| ms);
        assert_eq!(ms, [501.0, 901.0, 991.0, 1000.0, 1000.0]);
    }

    #[test]
    fn failures_are_counted_by_kind_and_bounded() {
        let mut failures = Failures::default();
        for i in 0..10 {
            failures.record(&format!("task {i} lost"));
        }
        failures.record(&"other");
        assert_eq!(failures.count(), 11);
        assert_eq!(
            failures.samples(),
            json!([[10, "task # lost"], [1, "other"]])
        );
        for i in 0..1000 {
            failures.record(&"x".repeat(i));
        }
        assert!(failures.0.len() <= FAILURE_KINDS + 1);
        assert_eq!(failures.count(), 1011);
    }
}
