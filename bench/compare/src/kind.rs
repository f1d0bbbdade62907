//! The kinds of load: how each is asked for, and which of its figures are told.

use std::cmp::Ordering;

use clap::ValueEnum;
use serde_json::Value;

use crate::{
    args::Args,
    contender::{Contender, Make},
};

/// Pages of a list run.
const PAGES: u64 = 200;
/// Tasks on a page.
pub(crate) const PAGE: u64 = 50;
/// The agent's pause before a fan-out, in milliseconds.
const GATHER_MS: u64 = 1500;

/// A kind of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Messages answered with a completed task.
    Send,
    /// Streams of some chunks.
    Stream,
    /// Reads of one task.
    Get,
    /// Page 1 of a list of many tasks.
    List,
    /// One task, many followers.
    Fanout,
    /// The memory of connections that are held open.
    Idle,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Stream => "stream",
            Self::Get => "get",
            Self::List => "list",
            Self::Fanout => "fanout",
            Self::Idle => "idle",
        }
    }

    /// What its figure counts.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Send => "sends/s",
            Self::Stream => "streams/s",
            Self::Get => "gets/s",
            Self::List => "pages/s",
            Self::Fanout => "deliveries/s",
            Self::Idle => "KB/connection",
        }
    }

    /// Of rates the higher is better, of memory the lower.
    pub(crate) fn better(self, one: f64, other: f64) -> Ordering {
        match self {
            Self::Idle => other.total_cmp(&one),
            _ => one.total_cmp(&other),
        }
    }

    /// Whether its runs have times of single requests.
    pub(crate) fn has_percentiles(self) -> bool {
        !matches!(self, Self::Fanout | Self::Idle)
    }

    /// The floor keeps no tasks, so it has no list of them.
    pub(crate) fn is_for(self, contender: Contender) -> bool {
        !(self == Self::List && contender.make == Make::Floor)
    }

    /// Arguments of `a2aload`, but for the server's.
    pub(crate) fn arguments(self, args: &Args) -> Vec<String> {
        let pairs = match self {
            Self::Send | Self::Get => {
                vec![
                    ("--connections", args.connections),
                    ("--secs", args.seconds),
                ]
            }
            Self::Stream => vec![
                ("--connections", args.connections),
                ("--secs", args.seconds),
                ("--chunks", args.chunks),
            ],
            Self::List => {
                vec![
                    ("--n", PAGES),
                    ("--page-size", PAGE),
                    ("--total", args.tasks),
                    ("--secs", args.seconds),
                ]
            }
            Self::Fanout => vec![
                ("--subs", args.followers),
                ("--events", args.events),
                ("--start-ms", GATHER_MS),
            ],
            Self::Idle => vec![("--connections", args.idle)],
        };
        let pairs = pairs
            .iter()
            .flat_map(|(flag, value)| [(*flag).to_owned(), value.to_string()]);
        std::iter::once(self.name().to_owned())
            .chain(pairs)
            .collect()
    }

    /// How many a second; of idle connections, what each takes. One list is asked for at a time, so
    /// its rate is that of its median.
    pub(crate) fn figure(self, line: &Value) -> f64 {
        match self {
            Self::Send | Self::Get => number(line, "rps"),
            Self::Stream => number(line, "streams_per_s"),
            Self::List => match number(line, "p50_ms") {
                0.0 => 0.0,
                ms => 1000.0 / ms,
            },
            Self::Fanout => number(line, "delivered_per_s_from_emit"),
            Self::Idle => number(line, "kb_per_connection"),
        }
    }

    /// The server's CPU for each, in microseconds.
    pub(crate) fn cpu_us(self, line: &Value) -> f64 {
        match self {
            Self::Send | Self::Get => number(line, "srv_cpu_us_per_req"),
            Self::Stream => number(line, "srv_cpu_us_per_stream"),
            Self::List => number(line, "srv_cpu_ms_per_req") * 1000.0,
            Self::Fanout => number(line, "srv_cpu_us_per_delivery"),
            Self::Idle => number(line, "srv_cpu_us_per_connection"),
        }
    }

    /// The median time taken, in milliseconds: of a fan-out, until the last follower has all.
    pub(crate) fn p50_ms(self, line: &Value) -> f64 {
        match self {
            Self::Fanout => number(line, "emit_to_last_s") * 1000.0,
            _ => number(line, "p50_ms"),
        }
    }
}

/// A figure of a line; what is not there is 0.
pub(crate) fn number(line: &Value, key: &str) -> f64 {
    line.get(key).and_then(Value::as_f64).unwrap_or_default()
}
