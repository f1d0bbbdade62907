//! How a SQLite store is opened.

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// The disk: what was acknowledged survives a power cut.
    #[default]
    Full,
    /// The operating system: what was acknowledged survives a crash of the process, but the last
    /// moments before a power cut may be lost (whole appends, from the end; never torn ones).
    Normal,
}

impl Synchronous {
    pub(super) fn pragma(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

/// How a SQLite store is opened.
///
/// ```
/// use nuncio_store::{SqliteOptions, Synchronous};
///
/// let options = SqliteOptions { synchronous: Synchronous::Normal, ..SqliteOptions::default() };
/// assert_eq!(options.max_bytes, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    /// What a commit waits for.
    pub synchronous: Synchronous,
    /// How many threads read. Each has a connection of its own.
    pub readers: usize,
    /// How large the database file may grow; appends beyond are refused until tasks are pruned.
    pub max_bytes: Option<u64>,
    /// How many bytes of appends may wait for the writer; those beyond are refused.
    pub max_queued_bytes: usize,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            synchronous: Synchronous::Full,
            readers: cores.clamp(2, 8),
            max_bytes: None,
            max_queued_bytes: 256 << 20,
        }
    }
}
