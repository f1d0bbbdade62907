//! Making a task out of what is stored.

use super::{
    live::{Live, decode},
    shared::Shared,
};
use nuncio_core::{LogEvent, Owner, Task, wire};
use nuncio_store::{StoreError, StoredTask};

/// A task in use as of entry `seq`, or as near to it as [`fold`] comes.
pub(crate) async fn as_of(live: &Live, seq: u64) -> Result<(Task, u64), StoreError> {
    let (task, newest) = live.snapshot();
    if seq >= newest {
        return Ok((task, newest));
    }
    let shared = live.shared();
    let stored = shared.store.load(live.owner(), live.id()).await?;
    fold(shared, live.owner(), &stored, seq).await
}

/// Folds a stored task up to entry `upto`, or to the newest. The number that comes with it is the
/// entry it is as of: greater than `upto` where the log that leads there was pruned.
pub(crate) async fn fold(
    shared: &Shared,
    owner: &Owner,
    stored: &StoredTask,
    upto: u64,
) -> Result<(Task, u64), StoreError> {
    const PAGE: usize = 512;
    let mut task = match &stored.checkpoint {
        Some(checkpoint) if stored.checkpoint_seq <= upto => {
            let task = wire::stored::decode_task(checkpoint).map_err(|e| {
                StoreError::Unavailable(format!("the task's checkpoint can't be read: {e}"))
            })?;
            Some((task, stored.checkpoint_seq))
        }
        _ => None,
    };
    let newest = upto.clamp(1, stored.last_seq.max(1));
    loop {
        let at = task.as_ref().map_or(0, |(_, seq)| *seq);
        if let Some(done) = task.take_if(|_| at >= newest) {
            return Ok(done);
        }
        let entries = shared.store.entries(owner, &stored.id, at, PAGE).await?;
        let contiguous = entries.first().is_some_and(|entry| entry.seq == at + 1);
        if !contiguous {
            // Pruned: the checkpoint is the oldest state there is.
            return match (&stored.checkpoint, upto < stored.checkpoint_seq) {
                (Some(_), true) => Box::pin(fold(shared, owner, stored, u64::MAX)).await,
                _ => Err(StoreError::Unavailable("the task's log has a gap".into())),
            };
        }
        for entry in entries {
            if entry.seq > newest {
                break;
            }
            let event = decode(&entry.body)?;
            task = match (task, event) {
                (None, LogEvent::Created(created)) => Some((created, entry.seq)),
                (Some((mut task, _)), event) => {
                    task.apply(&event).map_err(|fault| {
                        StoreError::Unavailable(format!("the task's log can't be folded: {fault}"))
                    })?;
                    Some((task, entry.seq))
                }
                (None, _) => {
                    return Err(StoreError::Unavailable(
                        "the task's log has no beginning".into(),
                    ));
                }
            };
        }
    }
}
