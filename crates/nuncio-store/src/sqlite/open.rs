//! From a path to connections: the directory, the lock, the checks, the schema.
//!
//! One process at a time: everything the writer remembers (leases, counts, the numbers it gives
//! out) is right only while nobody else writes. The lock is the operating system's, on a file
//! beside the database, so it goes with the process that held it, however that ended. Rejected:
//! SQLite's own exclusive mode, which would shut out our readers too, and a file that merely
//! exists, which a crash would leave behind.

use std::{
    fs::{self, File, TryLockError},
    io::{Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, config::DbConfig};

use super::{
    codes::uint,
    error::{io, read_only, said, unavailable},
    options::SqliteOptions,
};
use crate::StoreError;

mod embedded {
    refinery::embed_migrations!("migrations/sqlite");
}

/// Stands in the file's header and says that it is ours: "nunc".
const APPLICATION_ID: i64 = 0x6e75_6e63;
/// How long to wait for a program that looks into the file, say a backup.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// WAL pages after which they are moved into the database. Larger than SQLite's own choice,
/// since the same few index pages come in each commit and are moved once.
const CHECKPOINT_PAGES: u32 = 8192;
/// What the WAL file is cut back to when it grew beyond, say under a long read.
const WAL_BYTES: u64 = 64 << 20;
/// Pages that a connection keeps. A larger one costs the writer more than it saves: SQLite looks
/// through all of it at a commit that had to reorder a b-tree's pages.
const CACHE_KIB: u32 = 8 << 10;
/// Prepared statements that a connection keeps; there are fewer different ones.
const STATEMENTS: usize = 64;

/// A path that this process alone writes to, as long as this lives.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) path: PathBuf,
    lock: File,
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing the file would do, were it not for a child that is just being started and still
        // has a copy of it.
        if let Err(e) = self.lock.unlock() {
            tracing::warn!(path = %self.path.display(), error = %e, "unlocking the store");
        }
    }
}

/// Makes the directory where it is missing, and locks the path.
pub(super) fn lock(path: &Path) -> Result<Locked, StoreError> {
    let path = settle(path)?;
    let lock_path = beside(&path, ".lock");
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&lock_path)
        .map_err(|e| io(&path, "the lock file beside it can't be opened", &e))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Who holds it is a courtesy; not to learn it changes nothing.
            let known = file.read_to_string(&mut holder).is_ok() && !holder.trim().is_empty();
            let who = if known {
                format!(" (process {})", holder.trim())
            } else {
                String::new()
            };
            return Err(said(
                &path,
                format_args!(
                    "is in use by another nuncio{who}. Stop that one, or give this one a path of \
                     its own"
                ),
            ));
        }
        Err(TryLockError::Error(e)) => return Err(io(&path, "can't be locked", &e)),
    }
    let noted = file
        .set_len(0)
        .and_then(|()| write!(file, "{}", std::process::id()));
    if let Err(e) = noted {
        tracing::debug!(error = %e, "the lock file does not name its holder");
    }
    Ok(Locked { path, lock: file })
}

/// The path's one name, so that two links to a file are one lock.
fn settle(path: &Path) -> Result<PathBuf, StoreError> {
    if let Ok(real) = path.canonicalize() {
        if real.is_dir() {
            return Err(said(path, "is a directory; give the path of a file"));
        }
        return Ok(real);
    }
    let name = path
        .file_name()
        .ok_or_else(|| said(path, "names no file"))?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(|e| io(path, "its directory can't be made", &e))?;
    let parent = parent
        .canonicalize()
        .map_err(|e| io(path, "its directory can't be reached", &e))?;
    Ok(parent.join(name))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The writer's connection, to a database of the newest schema.
pub(super) fn writer(at: &Locked, options: &SqliteOptions) -> Result<Connection, StoreError> {
    let path = &at.path;
    let sql = |e: rusqlite::Error| unavailable(path, &e);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).map_err(sql)?;
    conn.busy_timeout(BUSY_TIMEOUT).map_err(sql)?;
    if conn.is_readonly("main").map_err(sql)? {
        return Err(read_only(path));
    }
    is_ours(path, &conn)?;
    steady_plans(&conn).map_err(sql)?;
    let mode: String = conn
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(sql)?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(said(
            path,
            "its file system can't hold a write-ahead log (is it a network share?). Choose a \
             path on a local disk",
        ));
    }
    conn.execute_batch(&format!(
        "PRAGMA synchronous = {};
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -{CACHE_KIB};
         PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES};
         PRAGMA journal_size_limit = {WAL_BYTES};",
        options.synchronous.pragma(),
    ))
    .map_err(sql)?;
    migrate(path, &mut conn)?;
    if let Some(bytes) = options.max_bytes {
        let page: i64 = conn
            .query_row("PRAGMA page_size", [], |row| row.get(0))
            .map_err(sql)?;
        let pages = (bytes / uint(page).max(1)).max(1);
        conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
            .map_err(sql)?;
    }
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

/// A connection that only reads.
pub(super) fn reader(at: &Locked) -> Result<Connection, StoreError> {
    let sql = |e: rusqlite::Error| unavailable(&at.path, &e);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(&at.path, flags).map_err(sql)?;
    conn.busy_timeout(BUSY_TIMEOUT).map_err(sql)?;
    steady_plans(&conn).map_err(sql)?;
    conn.execute_batch(&format!(
        "PRAGMA query_only = ON;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -{CACHE_KIB};"
    ))
    .map_err(sql)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

/// Plans a statement once, not anew for each value that is bound to it, which would cost more than
/// most statements here do.
fn steady_plans(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map(drop)
}

/// Refuses a file that some other program made.
fn is_ours(path: &Path, conn: &Connection) -> Result<(), StoreError> {
    let sql = |e: rusqlite::Error| unavailable(path, &e);
    let id: i64 = conn
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .map_err(sql)?;
    let tables: i64 = conn
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(sql)?;
    if tables > 0 && id != APPLICATION_ID {
        return Err(said(
            path,
            "is another program's database. Give the store a path of its own; the file was left \
             as it is",
        ));
    }
    if tables == 0 {
        // Before the first table, so that a start that is cut short leaves no unmarked file.
        conn.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}"))
            .map_err(sql)?;
    }
    Ok(())
}

fn migrate(path: &Path, conn: &mut Connection) -> Result<(), StoreError> {
    let runner = embedded::migrations::runner();
    let known = runner
        .get_migrations()
        .iter()
        .map(|m| i64::from(m.version()))
        .max()
        .unwrap_or(0);
    let applied: Option<i64> = conn
        .query_row(
            "SELECT 1 FROM sqlite_schema WHERE name = 'refinery_schema_history'",
            [],
            |_| Ok(()),
        )
        .optional()
        .and_then(|found| match found {
            None => Ok(None),
            Some(()) => conn.query_row(
                "SELECT max(version) FROM refinery_schema_history",
                [],
                |row| row.get(0),
            ),
        })
        .map_err(|e| unavailable(path, &e))?;
    if let Some(applied) = applied.filter(|applied| *applied > known) {
        return Err(said(
            path,
            format_args!(
                "was written by a newer nuncio (its schema is {applied}, this one knows up to \
                 {known}). Upgrade nuncio, or give it another path"
            ),
        ));
    }
    match runner.run(conn) {
        Ok(report) => {
            for migration in report.applied_migrations() {
                tracing::info!(%migration, path = %path.display(), "the store's schema was brought up");
            }
            Ok(())
        }
        Err(e) => Err(said(
            path,
            format_args!("its schema can't be brought up: {e}"),
        )),
    }
}
