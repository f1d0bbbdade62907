//! The agent behind the A2A technology compatibility kits, of both versions of the protocol.
//!
//! The 1.0 kit asks for a behaviour by the prefix of the message's id; of two that match, the
//! longer is meant. The 0.3 kit sends plain messages under ids of its own and wants the task to
//! be cancelable and continuable afterwards, several times over: so any other id gets an artifact
//! and a question. Its card takes and makes everything, since the 1.0 kit sends a media type that
//! nobody has and wants it accepted.

use super::{card, skill};
use nuncio_core::{AgentCard, Part, TaskState};
use nuncio_server::{Agent, Turn, TurnResult, async_trait};
use serde_json::json;
use std::time::Duration;

/// How long a task is at work for whoever subscribes to it again: twice the kits' default
/// timeout for streams.
const LONG: Duration = Duration::from_secs(4);

/// See the module's head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tck;

impl Tck {
    /// What its card says.
    pub(crate) fn card() -> AgentCard {
        let about = "Behaves as the A2A TCK asks, by the message's id.";
        let skill = skill(
            "tck",
            about,
            &["tck", "conformance"],
            &["tck-complete-task-1"],
        );
        card("tck", about, "*/*", skill)
    }
}

/// What the agent does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Complete,
    CompleteWith(&'static str),
    Artifact(Content),
    Work(Content),
    WorkInChunks(&'static [&'static str]),
    WorkLong,
    Reply(&'static str),
    Wait,
    Reject(&'static str),
    Converse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Text(&'static str),
    File,
    FileUrl,
    Data,
}

impl Content {
    fn part(self) -> Part {
        let text_file = |part: Part| Part {
            media_type: Some("text/plain".to_owned()),
            ..part.named("output.txt")
        };
        match self {
            Self::Text(text) => Part::text(text),
            Self::File => text_file(Part::raw("tck", "text/plain")),
            Self::FileUrl => text_file(Part::url("https://example.com/output.txt")),
            Self::Data => Part::data(json!({"key": "value", "count": 42})),
        }
    }
}

const BEHAVIOURS: &[(&str, Behaviour)] = &[
    (
        "tck-complete-task",
        Behaviour::CompleteWith("Hello from TCK"),
    ),
    (
        "tck-artifact-text",
        Behaviour::Artifact(Content::Text("Generated text content")),
    ),
    ("tck-artifact-file", Behaviour::Artifact(Content::File)),
    (
        "tck-artifact-file-url",
        Behaviour::Artifact(Content::FileUrl),
    ),
    ("tck-artifact-data", Behaviour::Artifact(Content::Data)),
    (
        "tck-message-response",
        Behaviour::Reply("Direct message response"),
    ),
    ("tck-input-required", Behaviour::Wait),
    ("tck-reject-task", Behaviour::Reject("rejected")),
    (
        "tck-stream-001",
        Behaviour::Work(Content::Text("Stream hello from TCK")),
    ),
    ("tck-stream-002", Behaviour::Complete),
    (
        "tck-stream-003",
        Behaviour::Work(Content::Text("Stream task lifecycle")),
    ),
    (
        "tck-stream-ordering-001",
        Behaviour::Work(Content::Text("Ordered output")),
    ),
    (
        "tck-stream-artifact-text",
        Behaviour::Work(Content::Text("Streamed text content")),
    ),
    ("tck-stream-artifact-file", Behaviour::Work(Content::File)),
    (
        "tck-stream-artifact-chunked",
        Behaviour::WorkInChunks(&["chunk-1 ", "chunk-2"]),
    ),
    ("test-resubscribe-message-id", Behaviour::WorkLong),
];

impl Behaviour {
    fn of(message_id: &str) -> Self {
        let matching = BEHAVIOURS
            .iter()
            .filter(|(prefix, _)| message_id.starts_with(prefix));
        let longest = matching.max_by_key(|(prefix, _)| prefix.len());
        longest.map_or(Self::Converse, |(_, behaviour)| *behaviour)
    }
}

#[async_trait]
impl Agent for Tck {
    async fn run(&self, turn: Turn) -> TurnResult {
        match Behaviour::of(turn.message().id.as_str()) {
            Behaviour::Complete => turn.complete(),
            Behaviour::CompleteWith(text) => turn.complete_with(text),
            Behaviour::Artifact(content) => {
                turn.chunks("tck").finish(content.part()).await?;
                turn.complete()
            }
            Behaviour::Work(content) => {
                turn.working().await?;
                turn.chunks("tck").finish(content.part()).await?;
                turn.complete()
            }
            Behaviour::WorkInChunks(texts) => {
                turn.working().await?;
                let mut chunks = turn.chunks("tck");
                if let Some((last, before)) = texts.split_last() {
                    for text in before {
                        chunks.send(Part::text(*text)).await?;
                    }
                    chunks.finish(Part::text(*last)).await?;
                }
                turn.complete()
            }
            Behaviour::WorkLong => {
                turn.working().await?;
                tokio::select! {
                    () = turn.canceled() => turn.cancel(),
                    () = tokio::time::sleep(LONG) => turn.complete(),
                }
            }
            Behaviour::Reply(text) => turn.reply(vec![Part::text(text)]),
            Behaviour::Wait => turn.end(TaskState::InputRequired, None),
            Behaviour::Reject(reason) => turn.reject(reason),
            Behaviour::Converse => {
                turn.text_artifact("tck", turn.message().text()).await?;
                turn.ask("Go on?")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::testing::{Rig, text_message};
    use serde_json::Value;

    async fn answer(rig: &Rig, message_id: &str) -> Value {
        rig.send(text_message(message_id, "hello")).await
    }

    #[test]
    fn the_longest_prefix_is_meant() {
        let of = |id| Behaviour::of(id);
        assert_eq!(
            of("tck-artifact-file-x-jsonrpc"),
            Behaviour::Artifact(Content::File)
        );
        assert_eq!(
            of("tck-artifact-file-url-x"),
            Behaviour::Artifact(Content::FileUrl)
        );
        assert_eq!(of("tck-send-003-x"), Behaviour::Converse);
        assert_eq!(of("text-message-id-1"), Behaviour::Converse);
    }

    #[tokio::test]
    async fn each_prefix_has_its_answer() {
        let rig = Rig::start(Tck).await;
        for (id, state) in [
            ("tck-complete-task-1", "TASK_STATE_COMPLETED"),
            ("tck-input-required-1", "TASK_STATE_INPUT_REQUIRED"),
            ("tck-reject-task-1", "TASK_STATE_REJECTED"),
            ("tck-stream-002-1", "TASK_STATE_COMPLETED"),
            ("anything", "TASK_STATE_INPUT_REQUIRED"),
        ] {
            assert_eq!(
                answer(&rig, id).await["task"]["status"]["state"],
                state,
                "{id}"
            );
        }
        for (id, part) in [
            (
                "tck-artifact-text-1",
                json!({"text": "Generated text content"}),
            ),
            (
                "tck-artifact-file-1",
                json!({"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"}),
            ),
            (
                "tck-artifact-file-url-1",
                json!({"url": "https://example.com/output.txt", "filename": "output.txt",
                       "mediaType": "text/plain"}),
            ),
            (
                "tck-artifact-data-1",
                json!({"data": {"key": "value", "count": 42}}),
            ),
            ("tck-stream-001-1", json!({"text": "Stream hello from TCK"})),
        ] {
            let task = answer(&rig, id).await["task"].take();
            assert_eq!(task["artifacts"][0]["parts"], json!([part]), "{id}");
            assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{id}");
        }
        let reply = answer(&rig, "tck-message-response-1").await;
        assert_eq!(
            reply["message"]["parts"][0]["text"],
            "Direct message response"
        );
        let done = answer(&rig, "tck-complete-task-1").await;
        let said = &done["task"]["status"]["message"]["parts"][0]["text"];
        assert_eq!(said, "Hello from TCK");
    }

    #[tokio::test]
    async fn a_stream_goes_by_the_scenario() {
        let rig = Rig::start(Tck).await;
        let message = text_message("tck-stream-artifact-chunked-1", "hello");
        let events = rig.stream(message).await.rest().await;
        let said: Vec<_> = events
            .iter()
            .filter_map(|e| e["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str())
            .collect();
        assert_eq!(said, ["chunk-1 ", "chunk-2"]);
        assert_eq!(
            events[1]["statusUpdate"]["status"]["state"],
            "TASK_STATE_WORKING"
        );
    }

    #[tokio::test]
    async fn a_task_waiting_for_input_can_be_continued_completed_and_canceled() {
        let rig = Rig::start(Tck).await;
        let task = answer(&rig, "plain").await["task"].take();
        let continued = |id: &str| {
            let mut message = text_message(id, "more");
            message["taskId"] = task["id"].clone();
            message
        };
        for _ in 0..3 {
            let next = rig.send(continued("plain")).await["task"].take();
            assert_eq!(next["id"], task["id"]);
            assert_eq!(next["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
        }
        let again = rig.send(continued("tck-input-required-1")).await["task"].take();
        assert_eq!(again["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
        let done = rig.send(continued("tck-complete-task-1")).await["task"].take();
        assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");

        let other = answer(&rig, "plain").await["task"].take();
        let canceled = rig.call("CancelTask", json!({"id": other["id"]})).await;
        assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED");
    }

    #[tokio::test]
    async fn the_long_task_can_be_canceled_at_work() {
        let rig = Rig::start(Tck).await;
        let message = text_message("test-resubscribe-message-id-1", "hello");
        let mut stream = rig.stream(message).await;
        let task = stream.next().await.unwrap()["task"].take();
        let canceled = rig.call("CancelTask", json!({"id": task["id"]})).await;
        assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED");
    }

    #[tokio::test]
    async fn any_media_type_is_taken() {
        let rig = Rig::start(Tck).await;
        let message = json!({
            "messageId": "tck-send-003", "role": "ROLE_USER",
            "parts": [{"raw": "dGNr", "mediaType": "application/x-unsupported-tck-type"}],
        });
        let task = rig.send(message).await["task"].take();
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    }
}
