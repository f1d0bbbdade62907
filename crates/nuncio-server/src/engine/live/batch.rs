//! From the queue to the store, and what was committed to the readers.

use super::{
    Live, Shown,
    state::{Pending, State},
};
use nuncio_core::{LogEvent, Timestamp, wire};
use nuncio_store::{Append, Appended, Entry, LeaseChange, NewTask, Orphan, StatusRow, StoreError};
use std::sync::Arc;

struct Batch {
    append: Append,
    meaning: Meaning,
}

/// What a batch means for the task once it is committed.
struct Meaning {
    events: Vec<Pending>,
    settling: Option<u64>,
    create: bool,
    release: bool,
}

impl Live {
    pub(super) fn kick(self: &Arc<Self>, state: &mut State) {
        if state.flushing || !state.has_work() {
            return;
        }
        if !state.born {
            // A bare message: nothing goes to the store.
            if let Some(settled) = state.settling.take() {
                state.settled = settled;
                self.changed.notify_waiters();
            }
            return;
        }
        state.flushing = true;
        let flushing = self.shared.flushing();
        let flush = Arc::clone(self).flush();
        tokio::spawn(async move {
            flush.await;
            drop(flushing);
        });
    }

    async fn flush(self: Arc<Self>) {
        loop {
            let Some(batch) = self.take_batch() else {
                return;
            };
            let Batch { append, meaning } = batch;
            let store = &self.shared.store;
            let empty = append.entries.is_empty() && append.lease == LeaseChange::Keep;
            let result = if meaning.create {
                let task = NewTask {
                    id: self.id.clone(),
                    context_id: self.context_id.clone(),
                    push_configs: Vec::new(),
                    first: append,
                };
                store.create(&self.owner, task).await
            } else if empty {
                Ok(Appended::Committed {
                    fence: None,
                    deliveries: 0,
                })
            } else {
                store.append(&self.owner, &self.id, append).await
            };
            self.publish(meaning, result);
        }
    }

    fn take_batch(&self) -> Option<Batch> {
        let mut state = self.state.lock();
        if state.lost.is_some() || !state.has_work() {
            state.flushing = false;
            return None;
        }
        let mut events = state.next_batch();
        let settling = if state.pending.is_empty() {
            state.settling.take()
        } else {
            None
        };
        let mut append = Append {
            fence: state.fence,
            ..Append::default()
        };
        let mut terminal = false;
        for Pending { event, logged, key } in &mut events {
            append.entries.push(Entry {
                seq: logged.seq,
                body: logged.body.clone(),
            });
            let status = match event {
                LogEvent::Created(task) => {
                    append.message_seq = Some(logged.seq);
                    append.idempotency = key.take();
                    &task.status
                }
                LogEvent::Message(_) => {
                    append.message_seq = Some(logged.seq);
                    append.idempotency = key.take();
                    continue;
                }
                LogEvent::Status(update) => &update.status,
                LogEvent::Artifact(_) => continue,
            };
            terminal |= status.state.is_terminal();
            append.status = Some(StatusRow {
                state: status.state,
                since: status.timestamp.unwrap_or_else(Timestamp::now),
            });
        }
        let resting = terminal || (settling.is_some() && state.turn.is_none());
        append.lease = match (resting, state.fence) {
            (true, Some(_)) => LeaseChange::Release,
            (true, None) => LeaseChange::Keep,
            (false, Some(_)) => LeaseChange::Keep,
            (false, None) => self.shared.take_lease(),
        };
        let create = !state.stored;
        let task = resting.then(|| state.task.clone());
        drop(state);
        // A checkpoint at the end of each turn keeps a task's reads short however long its log;
        // one for each update would make a long stream cost the square of its length.
        append.checkpoint = task.map(|mut task| {
            for Pending { event, .. } in &events {
                // Checked when it was queued; `Created` is the task itself.
                let _ = task.apply(event);
            }
            wire::stored::encode_task(&task).into()
        });
        let release = append.lease == LeaseChange::Release;
        Some(Batch {
            append,
            meaning: Meaning {
                events,
                settling,
                create,
                release,
            },
        })
    }

    fn publish(self: &Arc<Self>, meaning: Meaning, result: Result<Appended, StoreError>) {
        let Meaning {
            events,
            settling,
            create,
            release,
        } = meaning;
        let mut state = self.state.lock();
        match result {
            Ok(Appended::Committed { fence, .. }) => {
                state.stored = true;
                for Pending { event, logged, .. } in events {
                    if !matches!(event, LogEvent::Created(_)) {
                        // Checked when it was queued.
                        let _ = state.task.apply(&event);
                    }
                    if matches!(event, LogEvent::Status(_)) {
                        state.status_seq = logged.seq;
                        state.status_taken = logged.taken;
                    }
                    if logged.shown() == Shown::Final {
                        state.remember_end(logged.seq, logged.taken);
                    }
                    state.seq = logged.seq;
                    state.remember(logged, &self.shared.limits);
                }
                if let Some(settled) = settling {
                    state.settled = settled;
                }
                state.fence = if release { None } else { fence.or(state.fence) };
            }
            Ok(Appended::Duplicate(record)) => {
                state.duplicate = Some(record);
                state.lost = Some(StoreError::Malformed("the send was a duplicate"));
                state.pending.clear();
                self.shared.forget(self);
            }
            Err(error) => {
                tracing::error!(task = %self.id, %error, "the task's log could not be written");
                // Of these, somebody else has the task or it needs nobody.
                let gone = matches!(
                    error,
                    StoreError::StaleLease | StoreError::Ended(_) | StoreError::NotFound
                );
                let fence = state.fence.filter(|_| !create && !gone);
                state.lost = Some(error);
                state.pending.clear();
                self.shared.forget(self);
                self.shared.leave_behind(fence.map(|fence| Orphan {
                    owner: self.owner.clone(),
                    task: self.id.clone(),
                    fence,
                }));
            }
        }
        drop(state);
        self.changed.notify_waiters();
        self.nudged.notify_waiters();
    }
}
