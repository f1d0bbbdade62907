//! `idle`: the memory that the server holds.

use super::{RunError, Session};
use crate::report::Report;

pub(crate) fn run(session: &Session) -> Result<Report, RunError> {
    let mut report = session.report("idle");
    report.number("rss_mb", session.processes.resident()?.mb(), 1);
    Ok(report)
}
