//! Threads that read, each with a connection of its own.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::{self, JoinHandle},
};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::{
    error::{Failure, said, unavailable},
    open::{self, Locked},
};
use crate::StoreError;

type Question = Box<dyn FnOnce(&Connection, &Path) + Send>;

/// A handle to the readers' threads.
pub(super) struct Readers {
    queue: Arc<Queue>,
    path: PathBuf,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers")
            .field("threads", &self.threads.len())
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    come: Condvar,
}

#[derive(Default)]
struct Waiting {
    questions: VecDeque<Question>,
    closed: bool,
}

impl Readers {
    pub(super) fn start(at: &Locked, threads: usize) -> Result<Self, StoreError> {
        let mut readers = Self {
            queue: Arc::default(),
            path: at.path.clone(),
            threads: Vec::new(),
        };
        for i in 0..threads.max(1) {
            let conn = open::reader(at)?;
            let (queue, path) = (Arc::clone(&readers.queue), at.path.clone());
            let thread = thread::Builder::new()
                .name(format!("nuncio-store-reader-{i}"))
                .spawn(move || {
                    while let Some(question) = queue.next() {
                        question(&conn, &path);
                    }
                })
                .map_err(|e| said(&at.path, format_args!("no thread to read with: {e}")))?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// Reads from one snapshot, which holds whatever was acknowledged before the call.
    pub(super) async fn run<F, T>(&self, read: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
        T: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.queue.put(Box::new(move |conn, path| {
            // Nobody waits any more: a caller that gave up costs nothing.
            if !reply.is_closed() {
                let answer = snapshot(conn, read).map_err(|e| match e {
                    Failure::Refused(e) => e,
                    Failure::Sql(e) => unavailable(path, &e),
                });
                let _ = reply.send(answer);
            }
        }));
        answer.await.map_err(|_| {
            said(
                &self.path,
                "the store's reader has stopped; restart the server",
            )
        })?
    }
}

fn snapshot<T>(
    conn: &Connection,
    read: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // Ends with the transaction's drop; there is nothing to commit.
    let tx = Transaction::new_unchecked(conn, TransactionBehavior::Deferred)?;
    read(&tx)
}

impl Queue {
    fn put(&self, question: Question) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.questions.push_back(question);
        drop(waiting);
        self.come.notify_one();
    }

    fn next(&self) -> Option<Question> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(question) = waiting.questions.pop_front() {
                return Some(question);
            }
            if waiting.closed {
                return None;
            }
            waiting = self
                .come
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .closed = true;
        self.come.notify_all();
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!(path = %self.path.display(), "a reader of the store had panicked");
            }
        }
    }
}
