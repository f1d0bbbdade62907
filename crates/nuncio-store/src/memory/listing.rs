//! Tasks of one owner, or of one owner's context, in the order of lists.
//!
//! One ordered set per state; a list of all states merges them. Rejected: a further set of all
//! states, which every change of status would have to maintain for the sake of a merge of eight.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
    ops::Bound,
    sync::Arc,
};

use nuncio_core::{TaskId, TaskState};

use crate::{ListQuery, StatusRow};

type Place = (nuncio_core::Timestamp, Arc<TaskId>);

#[derive(Debug, Default)]
pub(super) struct Listing {
    states: [BTreeSet<Place>; TaskState::ALL.len()],
}

impl Listing {
    pub(super) fn insert(&mut self, status: StatusRow, id: &Arc<TaskId>) {
        self.states[status.state as usize].insert((status.since, Arc::clone(id)));
    }

    pub(super) fn remove(&mut self, status: StatusRow, id: &Arc<TaskId>) {
        self.states[status.state as usize].remove(&(status.since, Arc::clone(id)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.states.iter().all(BTreeSet::is_empty)
    }

    /// The tasks of a page, and whether more come after it.
    pub(super) fn page(&self, query: &ListQuery) -> (Vec<&TaskId>, bool) {
        let limit = query.limit as usize;
        let upper = query.after.as_ref().map_or(Bound::Unbounded, |c| {
            Bound::Excluded((c.since, Arc::new(c.id.clone())))
        });
        let mut walks: Vec<_> = self
            .selected(query.state)
            .map(|set| set.range((Bound::Unbounded, upper.clone())).rev())
            .collect();
        // A max-heap of each walk's next place.
        let mut heads: BinaryHeap<(&Place, Reverse<usize>)> = BinaryHeap::new();
        for (i, walk) in walks.iter_mut().enumerate() {
            heads.extend(walk.next().map(|place| (place, Reverse(i))));
        }
        let mut page = Vec::new();
        while let Some(((since, id), Reverse(i))) = heads.pop() {
            if query.status_after.is_some_and(|after| *since < after) {
                break;
            }
            if page.len() == limit {
                return (page, true);
            }
            page.push(&**id);
            heads.extend(walks[i].next().map(|place| (place, Reverse(i))));
        }
        (page, false)
    }

    /// How many tasks fit the query, wherever its page is.
    pub(super) fn total(&self, query: &ListQuery) -> u64 {
        let count = |set: &BTreeSet<Place>| match query.status_after {
            None => set.len(),
            Some(after) => set
                .iter()
                .rev()
                .take_while(|(since, _)| *since >= after)
                .count(),
        };
        self.selected(query.state)
            .map(|set| count(set) as u64)
            .sum()
    }

    fn selected(&self, state: Option<TaskState>) -> impl Iterator<Item = &BTreeSet<Place>> {
        self.states
            .iter()
            .enumerate()
            .filter(move |(i, _)| state.is_none_or(|state| state as usize == *i))
            .map(|(_, set)| set)
    }
}
