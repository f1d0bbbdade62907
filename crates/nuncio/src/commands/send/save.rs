//! Files that an agent sends, kept.
//!
//! The name is the agent's and is not trusted: of a path only the last part counts, of that only
//! what is a harmless file name everywhere, and a file that is there is never written over or
//! written through (it may be a link).

use super::compose::extension;
use crate::client::text::is_bidi_control;
use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The longest name given, in bytes; file systems take 255.
const MAX_NAME_BYTES: usize = 120;
/// After so many files of one name something else is wrong.
const MAX_TRIES: u32 = 10_000;

/// The folder that files go to.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A folder; it is made when there is a file for it.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Writes a file and says where it is.
    pub(super) fn keep(
        &self,
        name: Option<&str>,
        media_type: Option<&str>,
        bytes: &[u8],
    ) -> io::Result<PathBuf> {
        let named = |error: io::Error, path: &Path| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        fs::create_dir_all(&self.path).map_err(|error| named(error, &self.path))?;
        let name = name.and_then(safe_name);
        let name =
            name.unwrap_or_else(|| format!("file.{}", extension(media_type.unwrap_or_default())));
        for number in 1..=MAX_TRIES {
            let path = self.path.join(numbered(&name, number));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    file.write_all(bytes).map_err(|error| named(error, &path))?;
                    return Ok(path);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(named(error, &path)),
            }
        }
        let text = format!("{} holds too many files called {name}", self.path.display());
        Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
    }
}

/// `report.pdf`, `report-2.pdf`, …
fn numbered(name: &str, number: u32) -> String {
    match (number, name.rsplit_once('.')) {
        (1, _) => name.to_owned(),
        (_, Some((stem, extension))) if !stem.is_empty() => format!("{stem}-{number}.{extension}"),
        _ => format!("{name}-{number}"),
    }
}

/// What can be kept of a name; `None` where nothing can.
fn safe_name(given: &str) -> Option<String> {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last
        .chars()
        .filter(|c| !c.is_control() && !is_bidi_control(*c))
        .map(|c| {
            if matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*') {
                '_'
            } else {
                c
            }
        })
        .collect();
    // Hidden files configure things; Windows drops dots and spaces at the end.
    let clean = clean
        .trim_start_matches(['.', ' ', '-'])
        .trim_end_matches(['.', ' ']);
    if clean.is_empty() {
        return None;
    }
    let short = shortened(clean);
    Some(if is_device(&short) {
        format!("_{short}")
    } else {
        short
    })
}

/// Cut to the longest name, with its extension where that is short.
fn shortened(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if extension.len() <= 16 => (stem, format!(".{extension}")),
        _ => (name, String::new()),
    };
    let mut end = (MAX_NAME_BYTES - extension.len()).min(stem.len());
    while !stem.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{extension}", &stem[..end])
}

/// Whether Windows takes a name for a device's, whatever its extension.
fn is_device(name: &str) -> bool {
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_ascii_uppercase();
    let numbered = |prefix: &str| {
        stem.strip_prefix(prefix)
            .is_some_and(|n| n.len() == 1 && n.as_bytes()[0].is_ascii_digit())
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL") || numbered("COM") || numbered("LPT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_harmless() {
        for (given, kept) in [
            ("report.pdf", Some("report.pdf")),
            ("../../etc/passwd", Some("passwd")),
            ("/etc/cron.d/x", Some("x")),
            ("..\\..\\boot.ini", Some("boot.ini")),
            ("C:evil.txt", Some("C_evil.txt")),
            (".bashrc", Some("bashrc")),
            ("-rf", Some("rf")),
            ("a\0b\n\u{1b}[2J.txt", Some("ab[2J.txt")),
            ("exe.\u{202e}fdp", Some("exe.fdp")),
            ("con.txt", Some("_con.txt")),
            ("COM1", Some("_COM1")),
            ("trailing. . ", Some("trailing")),
            ("übung.md", Some("übung.md")),
            ("..", None),
            ("a/..", None),
            ("a/", None),
            ("", None),
        ] {
            assert_eq!(safe_name(given).as_deref(), kept, "{given:?}");
        }
        let long = safe_name(&format!("{}.tar.gz", "ü".repeat(300))).unwrap();
        assert!(
            long.len() <= MAX_NAME_BYTES && long.ends_with(".gz"),
            "{long}"
        );
        let long = safe_name(&format!("a.{}", "b".repeat(300))).unwrap();
        assert_eq!(long.len(), MAX_NAME_BYTES);
    }

    #[test]
    fn nothing_is_written_over() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path().join("new/folder"));
        let first = folder.keep(Some("../a.txt"), None, b"1").unwrap();
        let second = folder.keep(Some("a.txt"), None, b"2").unwrap();
        let unnamed = folder.keep(None, Some("image/png"), b"3").unwrap();
        let names = [&first, &second, &unnamed].map(|p| p.file_name().unwrap().to_owned());
        assert_eq!(names, ["a.txt", "a-2.txt", "file.png"]);
        assert!(
            [&first, &second, &unnamed]
                .iter()
                .all(|p| p.parent() == first.parent())
        );
        assert_eq!(fs::read(first).unwrap(), b"1");
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_a_link() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("target");
        std::os::unix::fs::symlink(&target, home.path().join("a.txt")).unwrap();
        let folder = Folder::new(home.path().to_owned());
        let kept = folder.keep(Some("a.txt"), None, b"1").unwrap();
        assert_eq!(kept.file_name().unwrap(), "a-2.txt");
        assert!(!target.exists());
    }
}
