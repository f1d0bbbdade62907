//! `kill -9` at any moment: what was acknowledged is there, whole and without a gap.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Lines, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use bytes::Bytes;
use nuncio_core::TaskState;

use super::{SqliteOptions, SqliteStore};
use crate::{
    Append, Entry, ListQuery, Store,
    conformance::{alice, lists, moved, new_task, task},
};

const PATH: &str = "NUNCIO_STORE_TEST_PATH";
const ROUND: &str = "NUNCIO_STORE_TEST_ROUND";

/// This test program again, as another process that runs one ignored test.
pub(super) struct Child {
    process: std::process::Child,
    out: Lines<BufReader<std::process::ChildStdout>>,
}

impl Child {
    pub(super) fn start(test: &str, path: &Path) -> Self {
        Self::start_round(test, path, 0)
    }

    fn start_round(test: &str, path: &Path, round: u32) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .args([test, "--ignored", "--nocapture", "--test-threads=1"])
            .env(PATH, path)
            .env(ROUND, round.to_string())
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .expect("a child");
        let out = BufReader::new(process.stdout.take().expect("its output")).lines();
        Self { process, out }
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// So many lines of what the child says; fewer where it ends before.
    pub(super) fn lines(&mut self, n: usize) -> Vec<String> {
        // The test harness talks too.
        let said = self.out.by_ref().map_while(Result::ok);
        said.filter_map(|line| Some(line.split_once("> ")?.1.to_owned()))
            .take(n)
            .collect()
    }

    /// Ends it as `kill -9` does.
    pub(super) fn kill(&mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("gone");
    }

    pub(super) fn path() -> PathBuf {
        std::env::var_os(PATH).expect("a path").into()
    }

    /// Says a line to the parent.
    pub(super) fn say(line: &str) {
        let mut out = std::io::stdout().lock();
        writeln!(out, "> {line}")
            .and_then(|()| out.flush())
            .expect("said");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn body(id: &str, seq: u64) -> Bytes {
    // Long enough now and then to need several pages.
    let filling = "x".repeat(if seq.is_multiple_of(17) { 9000 } else { 40 });
    Bytes::from(format!("{id} {seq} {filling}"))
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("tasks.db");
    // Over all rounds: tasks, and the newest entry acknowledged of each.
    let mut acknowledged: BTreeMap<String, u64> = BTreeMap::new();
    for (round, kill_after) in [3, 250, 1, 40, 700, 111].into_iter().enumerate() {
        let round = u32::try_from(round).expect("few rounds");
        let mut child = Child::start_round("appends_until_it_is_killed", &path, round);
        let mut said = child.lines(kill_after);
        child.kill();
        // What it managed to say counts, though nobody had read it yet.
        said.extend(child.lines(usize::MAX));
        assert!(said.len() >= kill_after, "the child ended by itself");
        for line in said {
            let (id, seq) = line.rsplit_once(' ').expect("an id and a number");
            let seq = seq.parse().expect("a number");
            let known = acknowledged.entry(id.to_owned()).or_default();
            assert!(*known < seq);
            *known = seq;
        }
        tokio::runtime::Runtime::new()
            .expect("a runtime")
            .block_on(check(&path, &acknowledged));
    }
}

async fn check(path: &Path, acknowledged: &BTreeMap<String, u64>) {
    let store = SqliteStore::open(path, &SqliteOptions::default()).expect("opened again");
    for (id, seq) in acknowledged {
        let stored = store
            .load(&alice(), &task(id))
            .await
            .expect("an acknowledged task");
        assert!(stored.last_seq >= *seq, "{id}: entry {seq} is lost");
        let mut log: Vec<Entry> = Vec::new();
        loop {
            let after = log.last().map_or(0, |e| e.seq);
            let more = store
                .entries(&alice(), &task(id), after, 100)
                .await
                .expect("a log");
            if more.is_empty() {
                break;
            }
            log.extend(more);
        }
        let whole = (1..=stored.last_seq).map(|seq| Entry {
            seq,
            body: body(id, seq),
        });
        assert!(
            log.into_iter().eq(whole),
            "{id}: the log is not as it was written"
        );
        if stored.status.state == TaskState::Completed {
            assert_eq!(stored.checkpoint, Some(body(id, stored.last_seq)));
        }
    }
    // The counts went with what they count.
    for state in [None, Some(TaskState::Working), Some(TaskState::Completed)] {
        let query = ListQuery {
            state,
            ..lists::all(100)
        };
        let total = store.list(&alice(), &query).await.expect("a page").total;
        assert_eq!(
            lists::walk(&store, &alice(), &query).await.len() as u64,
            total
        );
    }
}

/// Run by the test above, in a process of its own.
#[test]
#[ignore = "a part of another test"]
fn appends_until_it_is_killed() {
    let round = std::env::var(ROUND).expect("a round");
    let store = SqliteStore::open(Child::path(), &SqliteOptions::default()).expect("opened");
    let store = std::sync::Arc::new(store);
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(async {
            let writers = (0..8).map(|w| {
                let (store, round) = (std::sync::Arc::clone(&store), round.clone());
                tokio::spawn(async move {
                    for n in 0.. {
                        write_a_task(&store, &format!("r{round}-w{w}-{n}")).await;
                    }
                })
            });
            for writer in writers.collect::<Vec<_>>() {
                writer.await.expect("no panic");
            }
        });
}

async fn write_a_task(store: &SqliteStore, id: &str) {
    let mut new = new_task(id);
    new.first.entries = vec![Entry {
        seq: 1,
        body: body(id, 1),
    }];
    store.create(&alice(), new).await.expect("created");
    Child::say(&format!("{id} 1"));
    let mut last = 1;
    while last < 40 {
        let entries: Vec<_> = (last + 1..last + 2 + last % 3)
            .map(|seq| Entry {
                seq,
                body: body(id, seq),
            })
            .collect();
        last += entries.len() as u64;
        let append = if last < 40 {
            Append {
                entries,
                ..Append::default()
            }
        } else {
            let checkpoint = Some(body(id, last));
            Append {
                entries,
                checkpoint,
                ..moved(last, TaskState::Completed, 2)
            }
        };
        store
            .append(&alice(), &task(id), append)
            .await
            .expect("appended");
        Child::say(&format!("{id} {last}"));
    }
}
