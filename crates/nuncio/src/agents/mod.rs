//! The agents that `nuncio serve` can serve.
//!
//! Each is an ordinary [`nuncio_server::Agent`]: the program has no other way to a task than a
//! user of the library has. A card made here says what the agent is and what it takes and makes;
//! interfaces, capabilities and security are for the server to fill in.

mod bench;
mod echo;
mod exec;
mod tck;
#[cfg(test)]
mod testing;

pub(crate) use bench::Bench;
pub(crate) use echo::Echo;
pub(crate) use exec::{Exec, ExecOptions};
pub(crate) use tck::Tck;

use nuncio_core::{AgentCard, AgentSkill};

/// The card of an agent with one skill and one media type.
fn card(name: &str, description: &str, mode: &str, skill: AgentSkill) -> AgentCard {
    AgentCard {
        name: name.to_owned(),
        description: description.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        default_input_modes: vec![mode.to_owned()],
        default_output_modes: vec![mode.to_owned()],
        skills: vec![skill],
        ..AgentCard::default()
    }
}

/// A skill that speaks for itself.
fn skill(id: &str, description: &str, tags: &[&str], examples: &[&str]) -> AgentSkill {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    AgentSkill {
        id: id.to_owned(),
        name: id.to_owned(),
        description: description.to_owned(),
        tags: owned(tags),
        examples: owned(examples),
        ..AgentSkill::default()
    }
}
