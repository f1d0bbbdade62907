//! The echo: says what it was told, a word at a time.

use super::{card, skill};
use nuncio_core::{AgentCard, Part};
use nuncio_server::{Agent, Turn, TurnResult, async_trait};

/// The most chunks an echo comes in: long texts are cut into several words at a time.
const MOST_CHUNKS: usize = 1000;

/// Answers with one artifact that holds the text it was sent, streamed by the word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Echo;

impl Echo {
    /// What its card says.
    pub(crate) fn card() -> AgentCard {
        let about = "Says what it was told, a word at a time.";
        let skill = skill("echo", about, &["echo", "test"], &["hello", "tell me this"]);
        card("echo", about, "text/plain", skill)
    }
}

#[async_trait]
impl Agent for Echo {
    async fn run(&self, turn: Turn) -> TurnResult {
        let text = turn.message().text();
        let mut rest = text.as_str();
        let mut echo = turn.chunks("echo");
        loop {
            let (chunk, more) = split(rest, text.len() / MOST_CHUNKS);
            if more.is_empty() {
                echo.finish(Part::text(chunk)).await?;
                return turn.complete();
            }
            echo.send(Part::text(chunk)).await?;
            rest = more;
        }
    }
}

/// Splits off the first word with the white space after it, and words after that until the
/// chunk has `least` bytes. White space before the first word goes with it.
fn split(text: &str, least: usize) -> (&str, &str) {
    let mut in_word = false;
    let mut after_word = false;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            after_word |= in_word;
            in_word = false;
        } else {
            if after_word && at >= least {
                return text.split_at(at);
            }
            in_word = true;
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::testing::{Rig, text_message};

    fn chunks(text: &str) -> Vec<&str> {
        let mut chunks = Vec::new();
        let mut rest = text;
        loop {
            let (chunk, more) = split(rest, text.len() / MOST_CHUNKS);
            chunks.push(chunk);
            if more.is_empty() {
                return chunks;
            }
            rest = more;
        }
    }

    #[test]
    fn each_word_keeps_the_space_after_it() {
        assert_eq!(chunks("one two"), ["one ", "two"]);
        assert_eq!(chunks("  one \t\n two\n"), ["  one \t\n ", "two\n"]);
        assert_eq!(
            chunks("ein Wörtchen\u{a0}東京 🦀"),
            ["ein ", "Wörtchen\u{a0}", "東京 ", "🦀"]
        );
        assert_eq!(chunks(""), [""]);
        assert_eq!(chunks(" \n"), [" \n"]);
    }

    #[test]
    fn a_long_text_is_whole_and_comes_in_few_chunks() {
        let text = "a ".repeat(300_000);
        let chunks = chunks(&text);
        assert!(chunks.len() <= MOST_CHUNKS + 1, "{} chunks", chunks.len());
        assert_eq!(chunks.concat(), text);
    }

    #[tokio::test]
    async fn the_chunks_of_the_stream_are_the_text() {
        let rig = Rig::start(Echo).await;
        let text = " hello  wide\nworld ";
        let mut stream = rig.stream(text_message("m1", text)).await;
        let events = stream.rest().await;
        let chunks: Vec<_> = events
            .iter()
            .filter_map(|e| e.get("artifactUpdate"))
            .collect();
        assert_eq!(chunks.len(), 3);
        assert_eq!(chunks[0]["artifact"]["name"], "echo");
        assert_eq!(chunks[2]["lastChunk"], true);
        let said: Vec<_> = chunks
            .iter()
            .filter_map(|c| c["artifact"]["parts"][0]["text"].as_str())
            .collect();
        assert_eq!(said.concat(), text);
        assert_eq!(
            events.last().unwrap()["statusUpdate"]["status"]["state"],
            "TASK_STATE_COMPLETED"
        );
    }

    #[tokio::test]
    async fn an_empty_text_is_echoed_too() {
        let rig = Rig::start(Echo).await;
        let task = rig.send(text_message("m1", "")).await["task"].take();
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], "");
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    }
}
