//! The writer's thread: a queue, and a transaction for all that is in it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    desk::Desk,
    error::{Failure, said, unavailable},
    open::{self, Locked},
    options::SqliteOptions,
    outbox,
};
use crate::StoreError;

/// So many jobs share a transaction at most, so that the first of them need not wait for ever.
const BATCH_JOBS: usize = 1024;
/// And so many bytes.
const BATCH_BYTES: usize = 8 << 20;
/// What a job weighs beside its bodies.
const JOB_BYTES: usize = 512;

/// A handle to the writer's thread.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<Sender<Queued>>,
    /// What waits, in bytes.
    waiting: Arc<AtomicUsize>,
    max_waiting: usize,
    path: PathBuf,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Queued {
    job: Box<dyn Job>,
    bytes: usize,
}

/// Work for the writer. It may be run several times, each time in a fresh transaction, and is
/// answered once.
trait Job: Send + std::fmt::Debug {
    /// Does the work, or learns that it is refused. An error means that the transaction is spoilt.
    fn run(&mut self, desk: &mut Desk<'_>) -> rusqlite::Result<()>;
    /// Answers with what the last run came to, or with the error.
    fn answer(self: Box<Self>, failed: Option<StoreError>);
}

struct Work<F, T> {
    work: F,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> std::fmt::Debug for Work<F, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}

impl<F, T> Job for Work<F, T>
where
    F: Fn(&mut Desk<'_>) -> Result<T, Failure> + Send,
    T: Send,
{
    fn run(&mut self, desk: &mut Desk<'_>) -> rusqlite::Result<()> {
        self.outcome = Some(match (self.work)(desk) {
            Ok(done) => Ok(done),
            Err(Failure::Refused(e)) => Err(e),
            Err(Failure::Sql(e)) => return Err(e),
        });
        Ok(())
    }

    fn answer(self: Box<Self>, failed: Option<StoreError>) {
        let outcome = match failed {
            Some(e) => Some(Err(e)),
            None => self.outcome,
        };
        if let Some(outcome) = outcome {
            // Whoever asked may have gone; what was asked is done all the same.
            let _ = self.reply.send(outcome);
        }
    }
}

impl Writer {
    /// Opens the database and starts the thread.
    pub(super) fn start(at: &Locked, options: &SqliteOptions) -> Result<Self, StoreError> {
        let conn = open::writer(at, options)?;
        outbox::recover(&conn).map_err(|e| unavailable(&at.path, &e))?;
        let (queue, jobs) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (path, counter) = (at.path.clone(), Arc::clone(&waiting));
        let (ready, opened) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("nuncio-store-writer".into())
            .spawn(move || {
                match Desk::new(&conn) {
                    Ok(desk) => {
                        let _ = ready.send(Ok(()));
                        Committer {
                            desk,
                            conn: &conn,
                            path: &path,
                            broken: None,
                        }
                        .work(&jobs, &counter);
                    }
                    Err(e) => {
                        let _ = ready.send(Err(unavailable(&path, &e)));
                    }
                }
                if let Err((_, e)) = conn.close() {
                    tracing::warn!(path = %path.display(), error = %e, "closing the store");
                }
            })
            .map_err(|e| said(&at.path, format_args!("no thread to write with: {e}")))?;
        opened
            .recv()
            .unwrap_or_else(|_| Err(said(&at.path, "the writer did not start")))?;
        Ok(Self {
            queue: Some(queue),
            waiting,
            max_waiting: options.max_queued_bytes,
            path: at.path.clone(),
            thread: Some(thread),
        })
    }

    /// Queues work, which happens at once and in the order of the calls, and waits until what it
    /// wrote is durable.
    pub(super) async fn run<F, T>(&self, bytes: usize, work: F) -> Result<T, StoreError>
    where
        F: Fn(&mut Desk<'_>) -> Result<T, Failure> + Send + 'static,
        T: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let bytes = bytes + JOB_BYTES;
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        if before > 0 && before.saturating_add(bytes) > self.max_waiting {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
            return Err(said(
                &self.path,
                format_args!(
                    "{before} bytes wait to be written already. Nothing was written; try again \
                     when the disk has caught up"
                ),
            ));
        }
        let job = Box::new(Work {
            work,
            outcome: None,
            reply,
        });
        let gone = || {
            said(
                &self.path,
                "the store's writer has stopped; restart the server",
            )
        };
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(Queued { job, bytes }).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The thread does what is queued, and ends.
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(path = %self.path.display(), "the store's writer had panicked");
        }
    }
}

/// Why a transaction was not committed.
struct Spoilt {
    why: StoreError,
    /// Whether fewer jobs could have fared better. Where the transaction did not even begin, they
    /// could not, and each might wait as long for the same answer.
    by_a_job: bool,
}

/// What the thread works with.
struct Committer<'c> {
    desk: Desk<'c>,
    conn: &'c Connection,
    path: &'c Path,
    /// Why nothing can be written any more.
    broken: Option<StoreError>,
}

impl Committer<'_> {
    fn work(mut self, jobs: &Receiver<Queued>, waiting: &AtomicUsize) {
        let mut batch = Vec::new();
        while let Ok(first) = jobs.recv() {
            let mut bytes = first.bytes;
            batch.push(first.job);
            while batch.len() < BATCH_JOBS && bytes < BATCH_BYTES {
                let Ok(next) = jobs.try_recv() else { break };
                bytes += next.bytes;
                batch.push(next.job);
            }
            self.commit(&mut batch);
            waiting.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Does a batch and answers it, leaving it empty.
    fn commit(&mut self, batch: &mut Vec<Box<dyn Job>>) {
        let failed = match self.attempt(batch) {
            Ok(()) => None,
            Err(Spoilt { why, by_a_job }) if batch.len() == 1 || !by_a_job => Some(why),
            Err(Spoilt { why, .. }) => {
                tracing::warn!(
                    path = %self.path.display(),
                    error = %why,
                    jobs = batch.len(),
                    "a commit failed; its appends are tried one by one"
                );
                for job in batch.drain(..) {
                    let mut alone = vec![job];
                    let failed = self.attempt(&mut alone).err().map(|spoilt| spoilt.why);
                    for job in alone {
                        job.answer(failed.clone());
                    }
                }
                return;
            }
        };
        for job in batch.drain(..) {
            job.answer(failed.clone());
        }
    }

    /// Runs jobs in one transaction; they are all done, or none is.
    fn attempt(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Spoilt> {
        if let Some(broken) = &self.broken {
            return Err(Spoilt {
                why: broken.clone(),
                by_a_job: false,
            });
        }
        let mut by_a_job = false;
        let done = self.desk.begin().and_then(|()| {
            by_a_job = true;
            jobs.iter_mut()
                .try_for_each(|job| job.run(&mut self.desk))?;
            self.desk.commit()
        });
        done.map_err(|e| {
            self.undo();
            Spoilt {
                why: unavailable(self.path, &e),
                by_a_job,
            }
        })
    }

    fn undo(&mut self) {
        self.desk.forget();
        if self.conn.is_autocommit() {
            return;
        }
        if let Err(e) = self.conn.execute_batch("ROLLBACK") {
            tracing::error!(path = %self.path.display(), error = %e, "a commit can't be undone");
            if !self.conn.is_autocommit() {
                self.broken = Some(said(
                    self.path,
                    format_args!(
                        "a failed commit could not be undone ({e}), so nothing more is written. \
                         What was acknowledged is safe; check the disk and restart the server"
                    ),
                ));
            }
        }
    }
}
