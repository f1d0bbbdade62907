//! Webhook deliveries: where they may go, how they get there, and what becomes of them.

mod target;
