//! How many tasks a second a store takes, and how long a page of a list takes.
//!
//! `cargo run --release -p nuncio-store --example append_rate [DIRECTORY]`
//!
//! Each append creates a task with four entries and a checkpoint, as a short turn of an agent
//! does, and is durable when it is counted. Give a directory on the disk to be measured.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use nuncio_core::{ContextId, Owner, Principal, TaskId, TaskState, Timestamp};
use nuncio_store::{
    Append, Entry, ListQuery, MemoryStore, NewTask, SqliteOptions, SqliteStore, StatusRow, Store,
    Synchronous,
};

const SPAN: Duration = Duration::from_secs(5);
const LISTED: u64 = 100_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let path = dir.join(format!("append_rate-{}.db", std::process::id()));
    println!("memory");
    measure(|| Ok(Arc::new(MemoryStore::new()))).await?;
    for synchronous in [Synchronous::Full, Synchronous::Normal] {
        println!("sqlite, {synchronous:?}");
        let options = SqliteOptions {
            synchronous,
            ..SqliteOptions::default()
        };
        measure(|| {
            clear(&path);
            Ok(Arc::new(SqliteStore::open(&path, &options)?))
        })
        .await?;
    }
    clear(&path);
    Ok(())
}

fn clear(path: &std::path::Path) {
    for suffix in ["", "-wal", "-shm", ".lock"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        // Not to be there is fine.
        let _ = std::fs::remove_file(name);
    }
}

async fn measure(
    make: impl Fn() -> Result<Arc<dyn Store>, Box<dyn std::error::Error>>,
) -> Result<(), Box<dyn std::error::Error>> {
    for writers in [1, 16, 64] {
        let store = make()?;
        let next = Arc::new(AtomicU64::new(0));
        let begun = Instant::now();
        let cpu = cpu_time();
        let tasks: Vec<_> = (0..writers)
            .map(|_| {
                let (store, next) = (Arc::clone(&store), Arc::clone(&next));
                tokio::spawn(async move {
                    while begun.elapsed() < SPAN {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        store.create(&owner(), new_task(n)).await?;
                    }
                    Ok::<_, nuncio_store::StoreError>(())
                })
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        let n = next.load(Ordering::Relaxed);
        let rate = n as f64 / begun.elapsed().as_secs_f64();
        let cost = (cpu_time() - cpu) * 1e6 / n as f64;
        println!("  {writers:>2} writers: {rate:>9.0} tasks/s, {cost:.1} µs of CPU each");
    }

    let store = make()?;
    let mut made = 0;
    while made < LISTED {
        let batch = (made..made + 1000).map(|n| {
            let store = Arc::clone(&store);
            async move { store.create(&owner(), new_task(n)).await }
        });
        futures(batch).await?;
        made += 1000;
    }
    let by_state = ListQuery {
        state: Some(TaskState::Completed),
        ..page()
    };
    let deep = ListQuery {
        after: Some(nuncio_store::ListCursor {
            since: since(LISTED / 2),
            id: id(LISTED / 2),
        }),
        ..page()
    };
    for (what, query) in [
        ("page 1", page()),
        ("by state", by_state),
        ("page 1000", deep),
    ] {
        let mut times = Vec::new();
        for _ in 0..500 {
            let begun = Instant::now();
            let got = store.list(&owner(), &query).await?;
            times.push(begun.elapsed());
            assert_eq!((got.tasks.len(), got.total), (50, LISTED));
        }
        times.sort_unstable();
        println!(
            "  {what} of {LISTED}: median {:?}, p99 {:?}",
            times[250], times[495]
        );
    }
    Ok(())
}

async fn futures<F>(work: impl Iterator<Item = F>) -> Result<(), Box<dyn std::error::Error>>
where
    F: Future<Output = Result<nuncio_store::Appended, nuncio_store::StoreError>> + Send + 'static,
{
    let tasks: Vec<_> = work.map(tokio::spawn).collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

fn page() -> ListQuery {
    ListQuery {
        limit: 50,
        ..ListQuery::default()
    }
}

fn owner() -> Owner {
    Principal::new("https://issuer.example", "somebody").owner()
}

fn id(n: u64) -> TaskId {
    TaskId::new(format!(
        "0199f3a2-{:04x}-7{:03x}-8000-{n:012x}",
        n >> 16,
        n & 0xfff
    ))
    .expect("an id")
}

fn since(n: u64) -> Timestamp {
    Timestamp::from_millis(1_760_000_000_000 + (n / 20) as i64)
}

fn new_task(n: u64) -> NewTask {
    let body = |seq: u64| {
        Bytes::from(format!(
            "{{\"seq\":{seq},\"text\":\"{}\"}}",
            "x".repeat(180)
        ))
    };
    NewTask {
        id: id(n),
        context_id: ContextId::new(format!("0199f3a2-0000-7000-9000-{n:012x}")).expect("an id"),
        push_configs: Vec::new(),
        first: Append {
            entries: (1..=4)
                .map(|seq| Entry {
                    seq,
                    body: body(seq),
                })
                .collect(),
            status: Some(StatusRow {
                state: TaskState::Completed,
                since: since(n),
            }),
            checkpoint: Some(Bytes::from("c".repeat(600))),
            message_seq: Some(1),
            ..Append::default()
        },
    }
}

/// The CPU time of this process in seconds, where the system tells.
fn cpu_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let ticks = |i: usize| {
        fields
            .get(i)
            .and_then(|t| t.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / 100.0
}
