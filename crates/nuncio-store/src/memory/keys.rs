//! Idempotency keys, and when they may be forgotten.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use nuncio_core::{Owner, Timestamp};

use crate::{IdempotencyKey, IdempotencyRecord, rules};

#[derive(Debug, Default)]
pub(super) struct Keys {
    records: HashMap<Owner, HashMap<Arc<str>, Kept>>,
    by_expiry: BTreeSet<(Timestamp, Owner, Arc<str>)>,
}

#[derive(Debug)]
struct Kept {
    record: IdempotencyRecord,
    expires: Timestamp,
}

impl Keys {
    pub(super) fn get(
        &self,
        owner: &Owner,
        key: &str,
        not_before: Timestamp,
    ) -> Option<&IdempotencyRecord> {
        let kept = self.records.get(owner)?.get(key)?;
        (kept.record.at >= not_before).then_some(&kept.record)
    }

    /// Keeps a record, in place of one that was found to be out of its window.
    pub(super) fn put(&mut self, owner: &Owner, key: &IdempotencyKey, record: IdempotencyRecord) {
        let now = record.at;
        let name: Arc<str> = key.key.as_str().into();
        let expires = rules::key_expiry(now, key.not_before);
        self.by_expiry
            .insert((expires, owner.clone(), Arc::clone(&name)));
        let old = self
            .records
            .entry(owner.clone())
            .or_default()
            .insert(Arc::clone(&name), Kept { record, expires });
        if let Some(old) = old.filter(|old| old.expires != expires) {
            self.by_expiry.remove(&(old.expires, owner.clone(), name));
        }
        self.expire(now, rules::KEYS_SWEPT);
    }

    /// Forgets at most `limit` records that are out of the window they were made for.
    pub(super) fn expire(&mut self, now: Timestamp, limit: usize) {
        for _ in 0..limit {
            if self
                .by_expiry
                .first()
                .is_none_or(|(expires, ..)| *expires >= now)
            {
                break;
            }
            let Some((_, owner, key)) = self.by_expiry.pop_first() else {
                break;
            };
            if let Some(keys) = self.records.get_mut(&owner) {
                keys.remove(&key);
                if keys.is_empty() {
                    self.records.remove(&owner);
                }
            }
        }
    }
}
