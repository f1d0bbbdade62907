//! The commands, one module each.

pub(crate) mod card;
pub(crate) mod check_config;
pub(crate) mod init;
pub(crate) mod keys;
pub(crate) mod map;
pub(crate) mod send;
pub(crate) mod serve;
