//! Streams: what a frame looks like, where a stream begins and ends, how it is resumed.

mod form;
mod limits;
mod resume;
mod turns;
