//! What is at the path, and who else is there.

use std::{fs, path::Path};

use rusqlite::Connection;

use super::{SqliteOptions, SqliteStore, crash::Child, open};
use crate::{
    Store, StoreError,
    conformance::{COMMITTED, alice, new_task, task},
};

/// Opens what can't be opened, and returns what is said about it.
fn refusal(path: impl AsRef<Path>) -> String {
    match SqliteStore::open(&path, &SqliteOptions::default()) {
        Ok(_) => panic!("{} was opened", path.as_ref().display()),
        Err(StoreError::Unavailable(text)) => text,
        Err(e) => panic!("{e}"),
    }
}

fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{text:?} does not say {word:?}");
    }
}

#[tokio::test]
async fn a_missing_directory_is_made() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a/b/tasks.db");
    let store = SqliteStore::open(&path, &SqliteOptions::default()).expect("opened");
    assert_eq!(store.create(&alice(), new_task("t")).await, COMMITTED);
    assert!(path.is_file());
    assert_eq!(store.path(), path.canonicalize().expect("a path"));
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("notes.txt");
    for text in ["x".repeat(5000), "remember the milk\n".repeat(60)] {
        fs::write(&path, &text).expect("written");
        says(
            &refusal(&path),
            &["notes.txt", "is not a database", "a path of its own"],
        );
        assert_eq!(fs::read_to_string(&path).expect("read"), text);
    }
}

#[test]
fn another_programs_database_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("tasks.db");
    let other = Connection::open(&path).expect("opened");
    other
        .execute_batch("CREATE TABLE tasks (id); INSERT INTO tasks VALUES (1)")
        .expect("made");
    drop(other);
    let before = fs::read(&path).expect("read");
    says(
        &refusal(&path),
        &["another program's database", "a path of its own"],
    );
    assert!(
        fs::read(&path).expect("read") == before,
        "the file was changed"
    );
}

#[test]
fn a_newer_schema_is_refused_with_the_way_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = open(&dir).path().to_owned();
    let conn = Connection::open(&path).expect("opened");
    conn.execute_batch(
        "INSERT INTO refinery_schema_history (version, name, applied_on, checksum)
         VALUES (9999, 'later', '2030-01-01T00:00:00Z', '1')",
    )
    .expect("written");
    drop(conn);
    says(&refusal(&path), &["newer nuncio", "9999", "Upgrade"]);
}

#[test]
fn a_schema_that_was_tampered_with_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = open(&dir).path().to_owned();
    let conn = Connection::open(&path).expect("opened");
    conn.execute_batch("UPDATE refinery_schema_history SET checksum = '1'")
        .expect("written");
    drop(conn);
    says(&refusal(&path), &["schema can't be brought up"]);
}

#[test]
fn a_directory_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    says(
        &refusal(dir.path()),
        &["is a directory", "the path of a file"],
    );
    says(&refusal(dir.path().join("x/..")), &["names no file"]);
}

#[test]
fn a_damaged_database_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = open(&dir).path().to_owned();
    let mut bytes = fs::read(&path).expect("read");
    bytes[100..].fill(0x5a);
    fs::write(&path, bytes).expect("written");
    says(&refusal(&path), &["is damaged", "backup"]);
}

#[test]
fn a_second_store_at_the_path_is_refused_until_the_first_is_gone() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = open(&dir);
    let path = first.path().to_owned();
    let me = format!("process {}", std::process::id());
    says(
        &refusal(&path),
        &[
            "tasks.db",
            "in use by another nuncio",
            &me,
            "path of its own",
        ],
    );
    drop(first);
    open(&dir);
}

#[cfg(unix)]
#[test]
fn links_to_a_database_are_one_database() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = open(&dir);
    let link = dir.path().join("link.db");
    std::os::unix::fs::symlink(first.path(), &link).expect("linked");
    says(&refusal(&link), &["in use by another nuncio"]);
    let linked_dir = dir.path().join("link");
    std::os::unix::fs::symlink(dir.path(), &linked_dir).expect("linked");
    says(
        &refusal(linked_dir.join("tasks.db")),
        &["in use by another nuncio"],
    );
}

#[test]
fn another_process_is_refused_until_the_first_is_dead() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("tasks.db");
    let mut child = Child::start("holds_the_lock", &path);
    child.lines(1);
    let pid = format!("process {}", child.id());
    says(&refusal(&path), &["in use by another nuncio", &pid]);
    child.kill();
    open(&dir);
}

/// Run by the test above, in a process of its own.
#[test]
#[ignore = "a part of another test"]
fn holds_the_lock() {
    let store = SqliteStore::open(Child::path(), &SqliteOptions::default()).expect("opened");
    Child::say("open");
    std::thread::park();
    drop(store);
}

#[cfg(target_os = "linux")]
#[test]
fn a_place_where_nobody_may_write_is_refused() {
    if Path::new("/sys/kernel").is_dir() {
        says(
            &refusal("/sys/nuncio.db"),
            &["/sys/nuncio.db", "lock file", "write access"],
        );
        says(
            &refusal("/sys/nuncio/tasks.db"),
            &["directory can't be made", "write access"],
        );
    } else {
        eprintln!("SKIPPED: there is no /sys here");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_read_only_file_or_directory_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir);
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let path = store.path().to_owned();
    drop(store);
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode set");
    };
    mode(&path, 0o444);
    if fs::OpenOptions::new().append(true).open(&path).is_ok() {
        eprintln!("SKIPPED: this user may write what is read-only (is it root?)");
        return;
    }
    says(&refusal(&path), &["is read-only", "write access"]);
    mode(&path, 0o644);
    mode(dir.path(), 0o555);
    fs::remove_file(path.with_extension("db.lock")).expect_err("the directory is read-only");
    let said = refusal(dir.path().join("other.db"));
    mode(dir.path(), 0o755);
    says(&said, &["write access"]);
    assert!(open(&dir).load(&alice(), &task("t")).await.is_ok());
}
