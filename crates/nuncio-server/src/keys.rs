//! API keys on disk: a file of names and hashes.
//!
//! A key is 256 random bits, so a plain SHA-256 is a safe way to keep it: there is nothing to
//! guess. The file holds no key, only hashes, and is read again when it changes, so a key that
//! is added or revoked counts without a restart.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use nuncio_core::{Secret, Timestamp};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

/// How often the file is looked at for changes, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What every key begins with, so that a leaked one can be found by a scanner.
const PREFIX: &str = "nuncio_";

/// A file of API keys.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    loaded: Mutex<Loaded>,
}

#[derive(Debug, Default)]
struct Loaded {
    by_hash: HashMap<String, String>,
    stamp: Option<Stamp>,
    looked: Option<Instant>,
}

/// What tells one state of the file from the next: some file systems' clocks are too coarse to
/// tell a revocation from what was written just before.
type Stamp = (SystemTime, u64);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    keys: Vec<KeyEntry>,
}

/// A key as the file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyEntry {
    /// Whom it stands for: the subject of the principal, and so whose tasks are seen.
    pub name: String,
    /// SHA-256 of the key, in hexadecimal.
    pub sha256: String,
    /// When it was made.
    pub created: String,
}

impl KeyFile {
    /// The keys in a file. A file that does not exist has none.
    ///
    /// # Errors
    /// Where it can't be read or is no key file.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let loaded = load(&path)?;
        Ok(Self {
            path,
            loaded: Mutex::new(loaded),
        })
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.loaded.lock().by_hash.is_empty()
    }

    /// The keys, in the order in which they were added.
    ///
    /// # Errors
    /// Where the file can't be read or is no key file.
    pub fn list(path: &Path) -> io::Result<Vec<KeyEntry>> {
        Ok(read(path)?.keys)
    }

    /// Makes a key for a name and adds it. The key itself is returned and kept nowhere. A name
    /// may have several keys, so that one can be replaced without a gap.
    ///
    /// # Errors
    /// Where the file can't be read or written, or the name is empty or has control characters.
    pub fn add(path: &Path, name: &str) -> io::Result<Secret> {
        if name.is_empty() || name.chars().any(char::is_control) {
            let error = "a key's name must not be empty and has no control characters";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let mut random = [0_u8; 32];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let key = format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random));
        let mut contents = read(path)?;
        contents.keys.push(KeyEntry {
            name: name.to_owned(),
            sha256: hash(key.as_bytes()),
            created: Timestamp::now().to_string(),
        });
        write(path, &contents)?;
        Ok(Secret::new(key))
    }

    /// Removes all keys of a name; says how many there were.
    ///
    /// # Errors
    /// Where the file can't be read or written.
    pub fn revoke(path: &Path, name: &str) -> io::Result<usize> {
        let mut contents = read(path)?;
        let before = contents.keys.len();
        contents.keys.retain(|key| key.name != name);
        let gone = before - contents.keys.len();
        if gone > 0 {
            write(path, &contents)?;
        }
        Ok(gone)
    }

    /// Whom a key stands for.
    pub(crate) fn subject(&self, key: &[u8]) -> Option<String> {
        let mut loaded = self.loaded.lock();
        if loaded.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            loaded.looked = Some(Instant::now());
            if stamp(&self.path) != loaded.stamp {
                match load(&self.path) {
                    Ok(fresh) => *loaded = fresh,
                    // Half-written or broken: the keys known so far stay, and it is looked at
                    // again.
                    Err(error) => tracing::error!(%error, "the key file can't be read again"),
                }
            }
        }
        loaded.by_hash.get(&hash(key)).cloned()
    }
}

fn load(path: &Path) -> io::Result<Loaded> {
    let stamp = stamp(path);
    let by_hash = read(path)?
        .keys
        .into_iter()
        .map(|key| (key.sha256, key.name))
        .collect();
    Ok(Loaded {
        by_hash,
        stamp,
        looked: Some(Instant::now()),
    })
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

fn read(path: &Path) -> io::Result<Contents> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contents::default()),
        Err(error) => return Err(explain(path, &error)),
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        let text = format!("{} is no key file: {error}", path.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

/// Writes beside the file and renames, so that a reader sees the old keys or the new.
fn write(path: &Path, contents: &Contents) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| explain(folder, &error))?;
    }
    let mut bytes = serde_json::to_vec_pretty(contents).map_err(io::Error::other)?;
    bytes.push(b'\n');
    let beside = path.with_extension("tmp");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&beside).and_then(|mut file| {
        io::Write::write_all(&mut file, &bytes)?;
        file.sync_all()
    });
    file.and_then(|()| fs::rename(&beside, path))
        .map_err(|error| explain(path, &error))
}

fn explain(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn hash(key: &[u8]) -> String {
    Sha256::digest(key)
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            use std::fmt::Write as _;
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}
