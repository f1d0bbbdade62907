//! How values stand in columns.

use nuncio_core::{ContextId, TaskId, TaskState, Timestamp};
use rusqlite::types::Type;

/// The codes of all states that a task can have.
pub(super) const STATES: [(TaskState, i64); 8] = [
    (TaskState::Submitted, 1),
    (TaskState::Working, 2),
    (TaskState::InputRequired, 3),
    (TaskState::AuthRequired, 4),
    (TaskState::Completed, 6),
    (TaskState::Failed, 7),
    (TaskState::Canceled, 8),
    (TaskState::Rejected, 9),
];

/// Bits of a log row's key that hold the number of its first entry.
const SEQ_BITS: u32 = 28;
/// The greatest number of an entry.
pub(super) const MAX_SEQ: u64 = (1 << SEQ_BITS) - 1;
/// The greatest number of a task.
pub(super) const MAX_NUM: i64 = i64::MAX >> SEQ_BITS;

/// A log row's key.
pub(super) fn place(num: i64, seq: u64) -> i64 {
    num << SEQ_BITS | int(seq.min(MAX_SEQ))
}

/// The entry number in a log row's key.
pub(super) fn place_seq(place: i64) -> u64 {
    uint(place) & MAX_SEQ
}

/// The code of a state. `Unspecified`, which no task has, gets one that no row has.
pub(super) fn state_code(state: TaskState) -> i64 {
    STATES
        .iter()
        .find(|(s, _)| *s == state)
        .map_or(0, |(_, code)| *code)
}

pub(super) fn state(column: usize, code: i64) -> rusqlite::Result<TaskState> {
    let known = STATES.iter().find(|(_, c)| *c == code);
    known
        .map(|(s, _)| *s)
        .ok_or(rusqlite::Error::IntegralValueOutOfRange(column, code))
}

pub(super) fn time(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

pub(super) fn task_id(column: usize, text: String) -> rusqlite::Result<TaskId> {
    TaskId::new(text)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(e)))
}

pub(super) fn context_id(column: usize, text: String) -> rusqlite::Result<ContextId> {
    ContextId::new(text)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(e)))
}

/// A count as SQLite holds it. Counts beyond its range don't occur; they would stop at its end.
pub(super) fn int(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

/// A count as SQLite holds it, which is never negative.
pub(super) fn uint(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}
