//! What is told in the end: medians, and ratios to the peer.

use std::fmt::Write;

use crate::{
    contender::{Contender, Make},
    kind::{Kind, number},
    load::Sample,
};

/// From so many processors taken by others on, a run is marked as disturbed.
const DISTURBED: f64 = 0.15;

/// What nuncio is to reach: a server, a kind of load, and how much of it.
const AIMS: [(Make, Kind, Aim); 5] = [
    (Make::NuncioSqlite, Kind::Send, Aim::TimesThePeer(1.5)),
    (Make::NuncioMemory, Kind::Stream, Aim::TimesThePeer(3.0)),
    (Make::NuncioSqlite, Kind::Stream, Aim::TimesThePeer(3.0)),
    (Make::NuncioMemory, Kind::List, Aim::Within(2.0)),
    (Make::NuncioSqlite, Kind::List, Aim::Within(2.0)),
];

#[derive(Debug, Clone, Copy)]
enum Aim {
    /// The rate of the best runtime, against the rate of the peer's best runtime.
    TimesThePeer(f64),
    /// Milliseconds, in the median.
    Within(f64),
}

/// One contender's medians.
#[derive(Debug)]
struct Row {
    kind: Kind,
    contender: Contender,
    figure: f64,
    /// From the least to the greatest figure of a round, as a share of the median.
    spread: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_us: f64,
    peak_mb: f64,
    errors: f64,
    others: f64,
}

impl Row {
    fn of(kind: Kind, contender: Contender, samples: &[&Sample]) -> Self {
        let over = |figure: &dyn Fn(&Sample) -> f64| {
            median(samples.iter().map(|sample| figure(sample)).collect())
        };
        let figures: Vec<f64> = samples
            .iter()
            .map(|sample| kind.figure(&sample.raw))
            .collect();
        let low = figures.iter().copied().fold(f64::MAX, f64::min);
        let high = figures.iter().copied().fold(0.0, f64::max);
        let figure = median(figures);
        Self {
            kind,
            contender,
            figure,
            spread: if figure > 0.0 {
                (high - low) / figure
            } else {
                0.0
            },
            p50_ms: over(&|sample| kind.p50_ms(&sample.raw)),
            p99_ms: over(&|sample| number(&sample.raw, "p99_ms")),
            cpu_us: over(&|sample| kind.cpu_us(&sample.raw)),
            peak_mb: over(&|sample| number(&sample.raw, "rss_peak_mb")),
            errors: samples
                .iter()
                .map(|sample| number(&sample.raw, "errors"))
                .sum(),
            others: over(&|sample| sample.others),
        }
    }

    /// How many times as much as another. What has answered wrongly is compared with nothing.
    fn times(&self, other: &Self) -> Option<f64> {
        let fine = self.errors + other.errors == 0.0 && other.figure > 0.0;
        fine.then(|| self.figure / other.figure)
    }

    fn line(&self, same: Option<&Self>, best: Option<&Self>) -> String {
        let ratio = |to: Option<&Self>| {
            to.and_then(|to| self.times(to))
                .map_or_else(none, |times| format!("{times:.2}"))
        };
        let p50 = match self.kind {
            Kind::Idle => none(),
            _ => millis(self.p50_ms),
        };
        let p99 = if self.kind.has_percentiles() {
            millis(self.p99_ms)
        } else {
            none()
        };
        let disturbed = if self.others > DISTURBED {
            " (disturbed)"
        } else {
            ""
        };
        format!(
            "| {} | {} | {:.*} | {} | {} | {p50} | {p99} | {:.1} | {:.0} | {:.0} %{disturbed} | {} |",
            self.contender.make,
            self.contender.threads,
            usize::from(self.kind == Kind::Idle),
            self.figure,
            ratio(same),
            ratio(best),
            self.cpu_us,
            self.peak_mb,
            self.spread * 100.0,
            self.errors,
        )
    }
}

/// A kind's rows, in the order in which the contenders first ran.
fn rows(kind: Kind, samples: &[Sample]) -> Vec<Row> {
    let samples: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.kind == kind)
        .collect();
    let mut contenders: Vec<Contender> = Vec::new();
    for sample in &samples {
        if !contenders.contains(&sample.contender) {
            contenders.push(sample.contender);
        }
    }
    let of = |contender| {
        let own = samples
            .iter()
            .filter(|sample| sample.contender == contender);
        Row::of(kind, contender, &own.copied().collect::<Vec<_>>())
    };
    contenders.into_iter().map(of).collect()
}

/// The table of a kind, in Markdown.
pub(crate) fn table(kind: Kind, samples: &[Sample]) -> String {
    let rows = rows(kind, samples);
    let peers_best = best(&rows, Make::PeerA2aLf);
    let mut text = format!("\n### {}\n\n", kind.name());
    let p50 = if kind == Kind::Fanout {
        "to the last, ms"
    } else {
        "p50 ms"
    };
    let _ = writeln!(
        text,
        "| server | threads | {} | × peer, same threads | × peer's best | {p50} | p99 ms | \
         CPU µs each | peak MB | spread | errors |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        kind.unit()
    );
    for row in &rows {
        let same = rows.iter().find(|peer| {
            peer.contender.make == Make::PeerA2aLf
                && peer.contender.threads == row.contender.threads
        });
        let _ = writeln!(text, "{}", row.line(same, peers_best));
    }
    text
}

/// What was aimed at, and whether it was reached, of what was measured.
pub(crate) fn aims(samples: &[Sample]) -> String {
    let mut text = String::new();
    for (make, kind, aim) in AIMS {
        let rows = rows(kind, samples);
        let Some(own) = best(&rows, make) else {
            continue;
        };
        let (reached, figure, asked) = match aim {
            Aim::TimesThePeer(times) => {
                let Some(ratio) = best(&rows, Make::PeerA2aLf).and_then(|peer| own.times(peer))
                else {
                    continue;
                };
                (
                    ratio >= times,
                    format!("{ratio:.2} × the peer"),
                    format!("{times} ×"),
                )
            }
            Aim::Within(ms) => (
                own.p50_ms < ms && own.errors == 0.0,
                format!("{} ms", millis(own.p50_ms)),
                format!("< {ms} ms"),
            ),
        };
        let verdict = if reached { "reached" } else { "NOT reached" };
        let _ = writeln!(
            text,
            "- {make}, {}: {figure}, aim {asked}: {verdict}",
            kind.name()
        );
    }
    if text.is_empty() {
        text
    } else {
        format!("\n### aims\n\n{text}")
    }
}

/// A run in a line.
pub(crate) fn line(sample: &Sample) -> String {
    let (kind, raw) = (sample.kind, &sample.raw);
    format!(
        "{:<6} {:<33} {:>9.0} {:<13} {:>7.1} µs  errors {}, others' CPU {:.0} %",
        kind.name(),
        sample.contender.name(),
        kind.figure(raw),
        kind.unit(),
        kind.cpu_us(raw),
        number(raw, "errors"),
        sample.others * 100.0,
    )
}

/// The best of a server's runtimes; one that has answered wrongly is not, where another has not.
fn best(rows: &[Row], make: Make) -> Option<&Row> {
    let own = rows.iter().filter(|row| row.contender.make == make);
    own.max_by(|a, b| {
        let fewer_errors = b.errors.total_cmp(&a.errors);
        fewer_errors.then_with(|| a.kind.better(a.figure, b.figure))
    })
}

/// What stands where there is no figure.
fn none() -> String {
    "–".to_owned()
}

fn millis(ms: f64) -> String {
    if ms < 10.0 {
        format!("{ms:.2}")
    } else {
        format!("{ms:.1}")
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => figures[middle],
        _ => f64::midpoint(figures[middle - 1], figures[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample(make: Make, threads: u64, rps: f64) -> Sample {
        let raw = json!({ "rps": rps, "p50_ms": 1.0, "errors": 0 });
        Sample {
            contender: Contender { make, threads },
            kind: Kind::Send,
            raw,
            others: 0.0,
        }
    }

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(vec![]), 0.0);
    }

    #[test]
    fn wrong_answers_have_no_ratio() {
        let mut peer = sample(Make::PeerA2aLf, 1, 200.0);
        peer.raw["errors"] = json!(1);
        let samples = [sample(Make::NuncioSqlite, 1, 300.0), peer];
        let table = table(Kind::Send, &samples);
        assert!(table.contains("| 300 | – | – |"), "{table}");
        assert_eq!(aims(&samples), "");
    }

    #[test]
    fn ratios_are_to_the_same_and_to_the_best_runtime() {
        let samples = [
            sample(Make::NuncioSqlite, 2, 300.0),
            sample(Make::PeerA2aLf, 1, 200.0),
            sample(Make::PeerA2aLf, 2, 100.0),
        ];
        let table = table(Kind::Send, &samples);
        assert!(
            table.contains("| nuncio, SQLite FULL | 2 | 300 | 3.00 | 1.50 |"),
            "{table}"
        );
        let aims = aims(&samples);
        assert!(
            aims.contains("1.50 × the peer, aim 1.5 ×: reached"),
            "{aims}"
        );
    }
}
