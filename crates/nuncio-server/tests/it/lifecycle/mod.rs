//! From a message to the end of its task, in every way there is.

mod answers;
mod cancel;
mod faults;
mod idempotency;
mod lists;
mod recovery;
mod storage;
