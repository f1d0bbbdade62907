//! The agent that benchmarks drive: as little work as there can be, so that what is measured is
//! the server.
//!
//! Its contract is the peers', so that all servers are asked the same: `stream:N` makes N chunks
//! of one artifact; `fanout:N:START_MS:GAP_MS` waits, then makes N chunks with a pause between
//! them, for followers to gather; anything else is echoed in one artifact. Each turn says first
//! that it is at work and ends completed.

use super::{card, skill};
use nuncio_core::{AgentCard, Part};
use nuncio_server::{Agent, AgentError, Turn, TurnResult, async_trait};
use std::time::Duration;

/// See the module's head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bench;

impl Bench {
    /// What its card says.
    pub(crate) fn card() -> AgentCard {
        let about = "Answers as benchmarks ask for it.";
        let examples = ["hello", "stream:10", "fanout:50:5000:0"];
        let skill = skill("bench", about, &["benchmark", "test"], &examples);
        card("bench", about, "text/plain", skill)
    }
}

#[async_trait]
impl Agent for Bench {
    async fn run(&self, turn: Turn) -> TurnResult {
        turn.working().await?;
        let text = turn.message().text();
        if let Some(asked) = text.strip_prefix("stream:") {
            let [count] = numbers(asked, [10]);
            chunks(&turn, count, Duration::ZERO).await?;
        } else if let Some(asked) = text.strip_prefix("fanout:") {
            let [count, start, gap] = numbers(asked, [0; 3]);
            tokio::time::sleep(Duration::from_millis(start)).await;
            chunks(&turn, count, Duration::from_millis(gap)).await?;
        } else {
            turn.chunks("out")
                .finish(Part::text(format!("echo: {text}")))
                .await?;
        }
        turn.complete()
    }
}

async fn chunks(turn: &Turn, count: u64, gap: Duration) -> Result<(), AgentError> {
    let Some(last) = count.checked_sub(1) else {
        return Ok(());
    };
    let mut out = turn.chunks("out");
    for i in 0..last {
        out.send(Part::text(format!("chunk {i}"))).await?;
        if !gap.is_zero() {
            tokio::time::sleep(gap).await;
        }
    }
    out.finish(Part::text(format!("chunk {last}"))).await
}

/// The numbers between colons; what is missing or no number is as in `or`.
fn numbers<const N: usize>(text: &str, or: [u64; N]) -> [u64; N] {
    let mut numbers = or;
    for (number, field) in numbers.iter_mut().zip(text.split(':')) {
        *number = field.parse().unwrap_or(*number);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::testing::{Rig, text_message};
    use serde_json::Value;

    async fn asked(text: &str) -> Vec<Value> {
        let rig = Rig::start(Bench).await;
        rig.stream(text_message("m1", text)).await.rest().await
    }

    fn texts(events: &[Value]) -> Vec<&str> {
        let chunks = events
            .iter()
            .filter_map(|event| event.get("artifactUpdate"));
        chunks
            .filter_map(|chunk| chunk["artifact"]["parts"][0]["text"].as_str())
            .collect()
    }

    fn states(events: &[Value]) -> Vec<&str> {
        let updates = events.iter().filter_map(|event| event.get("statusUpdate"));
        updates
            .filter_map(|update| update["status"]["state"].as_str())
            .collect()
    }

    #[tokio::test]
    async fn it_keeps_the_contract() {
        for (text, said) in [
            ("stream:3", vec!["chunk 0", "chunk 1", "chunk 2"]),
            ("stream:0", vec![]),
            ("fanout:2:1:1", vec!["chunk 0", "chunk 1"]),
            ("hello you", vec!["echo: hello you"]),
        ] {
            let events = asked(text).await;
            assert_eq!(texts(&events), said, "{text}");
            assert_eq!(
                states(&events),
                ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"],
                "{text}"
            );
        }
    }

    #[tokio::test]
    async fn the_chunks_are_one_artifact() {
        let events = asked("stream:3").await;
        let chunks: Vec<_> = events
            .iter()
            .filter_map(|e| e.get("artifactUpdate"))
            .collect();
        let flags: Vec<_> = chunks
            .iter()
            .map(|c| (c["append"] == true, c["lastChunk"] == true))
            .collect();
        assert_eq!(flags, [(false, false), (true, false), (true, true)]);
        assert!(
            chunks
                .iter()
                .all(|c| c["artifact"]["artifactId"] == chunks[0]["artifact"]["artifactId"])
        );
    }

    #[test]
    fn numbers_have_defaults() {
        assert_eq!(numbers("5:6", [1, 2, 3]), [5, 6, 3]);
        assert_eq!(numbers("x", [7]), [7]);
    }
}
