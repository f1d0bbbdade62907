//! What SQLite reports, in words that say what to do.

use std::{fmt, path::Path};

use rusqlite::ErrorCode;

use crate::StoreError;

/// Why a job did not do its work.
#[derive(Debug)]
pub(super) enum Failure {
    /// The store's rules refuse it, and it wrote nothing.
    Refused(StoreError),
    /// SQLite failed, and it may have written a part.
    Sql(rusqlite::Error),
}

impl From<StoreError> for Failure {
    fn from(e: StoreError) -> Self {
        Self::Refused(e)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(e: rusqlite::Error) -> Self {
        Self::Sql(e)
    }
}

/// An error of SQLite's, as the caller gets it.
pub(super) fn unavailable(path: &Path, e: &rusqlite::Error) -> StoreError {
    if e.sqlite_error_code() == Some(ErrorCode::ReadOnly) {
        return read_only(path);
    }
    let path = path.display();
    let text = match e.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => format!(
            "{path}: no room to write: the disk is full or the configured size is reached. \
             Nothing was written, and what was stored before is safe; free some space, or let \
             finished tasks be pruned"
        ),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => format!(
            "{path}: can't be opened: {e}. Check that the server's user may read and write the \
             file and its directory"
        ),
        Some(ErrorCode::NotADatabase) => format!(
            "{path}: is not a database. Give the store a path of its own; the file was left as \
             it is"
        ),
        Some(ErrorCode::DatabaseCorrupt) => format!(
            "{path}: is damaged: {e}. Restore it from a backup, or salvage what is readable with \
             `sqlite3 FILE .recover`"
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => format!(
            "{path}: another program holds the database locked ({e}). Close it; nothing was \
             written"
        ),
        Some(ErrorCode::SystemIoFailure) => format!(
            "{path}: input/output error: {e}. Nothing was written; check the disk and the \
             system's log"
        ),
        _ => format!("{path}: {e}"),
    };
    StoreError::Unavailable(text)
}

/// The file can be read but not written.
pub(super) fn read_only(path: &Path) -> StoreError {
    said(
        path,
        "is read-only. Give the server's user write access to the file and its directory",
    )
}

/// An error of the file system's, as the caller gets it.
pub(super) fn io(path: &Path, doing: &str, e: &std::io::Error) -> StoreError {
    let advice = match e.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            ". Give the server's user write access there, or choose another path"
        }
        std::io::ErrorKind::StorageFull => ". Free some space",
        _ => "",
    };
    said(path, format_args!("{doing}: {e}{advice}"))
}

/// An error in our own words.
pub(super) fn said(path: &Path, what: impl fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("{}: {what}", path.display()))
}
