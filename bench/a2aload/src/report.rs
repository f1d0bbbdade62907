//! The one line that a run prints.

use std::fmt;

use serde_json::{Map, Value};

use crate::{
    proc::Cost,
    stats::{Failures, Latencies},
};

/// A JSON object whose keys stay in the order in which they were put.
#[derive(Debug)]
pub(crate) struct Report(Map<String, Value>);

impl Report {
    pub(crate) fn new(label: &str, kind: &str) -> Self {
        let mut report = Self(Map::new());
        report.put("label", label).put("kind", kind);
        report
    }

    pub(crate) fn put(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Puts a number with so many decimals.
    pub(crate) fn number(&mut self, key: &str, value: f64, decimals: i32) -> &mut Self {
        self.put(key, rounded(value, decimals))
    }

    /// Puts the percentiles, each key behind a prefix.
    pub(crate) fn latencies(&mut self, prefix: &str, latencies: &mut Latencies) -> &mut Self {
        for (key, ms) in latencies.percentiles() {
            self.number(&format!("{prefix}{key}"), ms, 3);
        }
        self
    }

    pub(crate) fn failures(&mut self, failures: &Failures) -> &mut Self {
        self.put("errors", failures.count())
            .put("err_samples", failures.samples())
    }

    pub(crate) fn cost(&mut self, cost: &Cost) -> &mut Self {
        self.number("srv_cpu_s", cost.server_cpu, 2)
            .number("load_cpu_s", cost.own_cpu, 2)
            .number("other_cpu_s", cost.other_cpu, 2)
            .number("rss_before_mb", cost.resident_before.mb(), 1)
            .number("rss_after_mb", cost.resident_after.mb(), 1)
            .number("rss_peak_mb", cost.resident_peak.mb(), 1)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        serde_json::to_string(&self.0)
            .map_err(|_| fmt::Error)?
            .fmt(f)
    }
}

/// A number to so many decimals.
pub(crate) fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}
