//! What every store must do, as tests that any implementation can run.
//!
//! Each property is an async function over a fresh, empty store, which it has to itself (some
//! claims and prunings reach across owners). [`conformance_suite!`](crate::conformance_suite)
//! makes a `#[test]` of each. Properties state what is seen through the traits; what only one
//! store has, such as surviving a crash, is tested beside that store. No property waits for time
//! to pass: leases and claims are given times that lie far behind or far ahead.
//!
//! [`model`] is the odd one out: it plays random calls against a store and against a naive model
//! of all the rules, and compares every answer.

pub mod appends;
pub mod keys;
pub mod leases;
pub mod lists;
pub mod model;
pub mod outbox;
pub mod owners;
pub mod push_configs;
pub mod retention;

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use nuncio_core::{ContextId, Owner, Principal, TaskId, TaskState, Timestamp};

use crate::{
    Append, Appended, Claim, Entry, NewTask, NodeId, Notice, PushConfigRow, StatusRow, Store,
    StoreError,
};

/// Makes a `#[test]` of each property of the suite.
///
/// The argument is an async function that makes a fresh store, and something that must outlive
/// it, such as a temporary directory:
///
/// ```
/// use nuncio_store::MemoryStore;
///
/// async fn make() -> (MemoryStore, ()) {
///     (MemoryStore::new(), ())
/// }
///
/// mod memory {
///     nuncio_store::conformance_suite!(super::make);
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! conformance_suite {
    ($make:expr) => {
        $crate::conformance_suite! { @each $make;
            appends: a_task_reads_back_as_created;
            appends: entries_are_numbered_from_one_without_gaps;
            appends: an_append_that_does_not_continue_the_numbers_conflicts;
            appends: entries_come_in_order_and_in_portions;
            appends: long_appends_and_empty_bodies_read_back;
            appends: a_malformed_append_is_refused;
            appends: nothing_follows_a_terminal_state;
            appends: of_racing_terminal_states_one_wins;
            appends: of_racing_appends_with_one_number_one_wins;
            appends: appends_take_effect_in_the_order_of_the_calls;
            appends: a_refused_append_leaves_nothing;
            appends: a_checkpoint_stands_for_the_entries_before_it;
            appends: a_task_id_is_taken_once;
            owners: another_owners_task_is_as_absent_as_none;
            owners: owners_that_look_alike_are_apart;
            owners: ids_may_hold_anything;
            lists: newest_status_comes_first_and_ties_go_by_id;
            lists: filters_hold_and_totals_count_what_they_let_through;
            lists: pages_join_without_gap_or_repeat;
            lists: a_page_behind_the_end_is_empty;
            lists: what_does_not_move_is_listed_once_while_others_write;
            leases: a_lease_is_taken_kept_and_released;
            leases: another_nodes_lease_is_respected_while_in_force;
            leases: a_stale_fence_is_refused;
            leases: fences_grow_with_every_lease;
            leases: the_end_of_a_task_ends_its_lease;
            leases: renewing_keeps_leases_of_that_node_only;
            leases: orphans_are_claimed_once;
            leases: orphans_are_claimed_in_portions;
            keys: a_key_is_used_once;
            keys: of_racing_sends_with_one_key_one_is_written;
            keys: a_key_out_of_its_window_is_replaced;
            keys: a_retry_is_told_so_even_after_the_end;
            outbox: a_delivery_is_due_as_soon_as_its_entry_is_there;
            outbox: of_a_task_and_config_the_oldest_goes_first;
            outbox: a_claim_that_runs_out_is_due_again;
            outbox: only_the_claimant_settles;
            outbox: a_retry_waits_until_it_is_due;
            outbox: what_is_given_up_is_kept;
            outbox: racing_couriers_share_the_work;
            outbox: no_destination_waits_for_another;
            outbox: what_was_given_up_can_be_tried_again;
            outbox: a_delivery_can_be_dropped;
            outbox: what_is_too_old_is_given_up;
            push_configs: a_config_gets_what_is_committed_after_it;
            push_configs: a_replaced_config_keeps_its_place_and_its_deliveries;
            push_configs: a_deleted_config_takes_its_deliveries_along;
            push_configs: a_receiver_that_is_gone_loses_its_config;
            push_configs: a_task_has_so_many_and_no_more;
            push_configs: another_owners_configs_are_as_absent_as_none;
            retention: finished_tasks_go_in_bounded_steps;
            retention: logs_go_and_checkpoints_stay;
            retention: beyond_the_maximum_the_first_to_end_go;
            retention: unfinished_tasks_stay;
            retention: a_task_stays_until_its_deliveries_are_made;
        }

        #[test]
        fn random_calls_answer_as_the_model_does() {
            $crate::conformance::model::random_calls_answer_as_the_model_does($make);
        }
    };
    (@each $make:expr; $($module:ident: $property:ident;)*) => {
        $(
            #[test]
            fn $property() {
                $crate::conformance::check($make, $crate::conformance::$module::$property);
            }
        )*
    };
}

/// Runs a property against a fresh store.
///
/// # Panics
/// Where the store does not have it.
pub fn check<S: Store, G>(
    make: impl AsyncFnOnce() -> (S, G),
    property: impl AsyncFnOnce(Arc<dyn Store>),
) {
    block_on(async {
        let (store, guard) = make().await;
        property(Arc::new(store)).await;
        drop(guard);
    });
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(work)
}

/// A time that no lease or window of a test has passed.
pub(crate) const FAR: i64 = 200_000_000_000_000;

pub(crate) fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

pub(crate) fn owner(name: &str) -> Owner {
    Principal::new("test", name).owner()
}

pub(crate) fn alice() -> Owner {
    owner("alice")
}

pub(crate) fn task(id: &str) -> TaskId {
    TaskId::new(id).expect("a task id")
}

pub(crate) fn context(id: &str) -> ContextId {
    ContextId::new(id).expect("a context id")
}

pub(crate) fn node(name: &str) -> NodeId {
    NodeId(name.to_owned())
}

pub(crate) fn status(state: TaskState, since: i64) -> StatusRow {
    StatusRow {
        state,
        since: at(since),
    }
}

pub(crate) fn entry(seq: u64) -> Entry {
    Entry {
        seq,
        body: Bytes::from(format!("{{\"entry\":{seq}}}")),
    }
}

/// So many entries, from a number on.
pub(crate) fn entries(from: u64, n: u64) -> Vec<Entry> {
    (from..from + n).map(entry).collect()
}

/// An append of one entry.
pub(crate) fn one(seq: u64) -> Append {
    Append {
        entries: entries(seq, 1),
        ..Append::default()
    }
}

/// An append of one entry that changes the status.
pub(crate) fn moved(seq: u64, state: TaskState, since: i64) -> Append {
    Append {
        status: Some(status(state, since)),
        ..one(seq)
    }
}

/// A working task of one entry.
pub(crate) fn new_task(id: &str) -> NewTask {
    new_task_at(id, TaskState::Working, 1)
}

pub(crate) fn new_task_at(id: &str, state: TaskState, since: i64) -> NewTask {
    NewTask {
        id: task(id),
        context_id: context("c"),
        push_configs: Vec::new(),
        first: moved(1, state, since),
    }
}

/// A push config whose deliveries have a destination of their own.
pub(crate) fn hook(id: &str) -> PushConfigRow {
    PushConfigRow {
        id: id.to_owned(),
        destination: format!("to {id}"),
        body: Bytes::from(format!("config {id}")),
    }
}

/// That entry `seq` is to be delivered.
pub(crate) fn notice(seq: u64, due: i64) -> Notice {
    Notice { seq, due: at(due) }
}

/// A claim of all that is due.
pub(crate) fn claim_all(by: &NodeId, now: i64, until: i64) -> Claim {
    Claim {
        node: by.clone(),
        now: at(now),
        until: at(until),
        limit: 100,
        per_destination: 100,
        under_way: HashMap::new(),
    }
}

pub(crate) const COMMITTED: Result<Appended, StoreError> = Ok(Appended::Committed {
    fence: None,
    deliveries: 0,
});

pub(crate) fn is_malformed<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Malformed(_)))
}
