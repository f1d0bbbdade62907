//! The answer, as it is shown.
//!
//! However a task is learned of (one answer, a stream, a stream that broke, a snapshot after it)
//! every bit of its text is written once: for each artifact it is kept what was written, and of a
//! snapshot only what goes beyond that is new.

use super::save::Folder;
use crate::{
    client::text,
    exit::{CommandError, Exit},
};
use nuncio_core::{
    ArtifactId, ContextId, Event, Message, Part, PartContent, ProtocolVersion, TaskId, TaskState,
    TaskStatus,
};
use std::{
    collections::HashMap,
    io::{self, Write},
};

/// How the answer is shown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Form {
    /// As the server's JSON.
    pub(super) json: bool,
    /// Without notes.
    pub(super) quiet: bool,
    /// The task and its progress are noted as they come.
    pub(super) early: bool,
    /// The answer goes to a terminal.
    pub(super) harmless_answer: bool,
}

/// What is shown so far, and what is known of the task.
#[derive(Debug)]
pub(super) struct Show<O, E> {
    out: O,
    notes: E,
    form: Form,
    folder: Option<Folder>,
    version: ProtocolVersion,
    task: Option<TaskId>,
    context: Option<ContextId>,
    state: Option<TaskState>,
    /// What the newest status says.
    said: Option<Message>,
    /// The answer was a bare message.
    replied: bool,
    artifacts: HashMap<ArtifactId, Shown>,
    current: Option<ArtifactId>,
    answered: bool,
    in_line: bool,
}

/// What is shown of an artifact.
#[derive(Debug, Default)]
struct Shown {
    text: String,
    /// Parts that are not text.
    others: usize,
}

impl<O: Write, E: Write> Show<O, E> {
    /// Nothing shown yet.
    pub(super) fn new(out: O, notes: E, form: Form, folder: Option<Folder>) -> Self {
        Self {
            out,
            notes,
            form,
            folder,
            version: ProtocolVersion::V1_0,
            task: None,
            context: None,
            state: None,
            said: None,
            replied: false,
            artifacts: HashMap::new(),
            current: None,
            answered: false,
            in_line: false,
        }
    }

    /// The version that is spoken, and so the shape of JSON.
    pub(super) fn speak(&mut self, version: ProtocolVersion) {
        self.version = version;
    }

    /// The task, once it is known.
    pub(super) fn task(&self) -> Option<&TaskId> {
        self.task.as_ref()
    }

    /// Whether there is nothing to wait for any more.
    pub(super) fn is_over(&self) -> bool {
        // Of a state that is not known nobody can say what will come of it.
        self.replied
            || self
                .state
                .is_some_and(|s| s.is_final() || s == TaskState::Unspecified)
    }

    /// Whether nothing can follow.
    pub(super) fn has_ended(&self) -> bool {
        self.replied || self.state.is_some_and(TaskState::is_terminal)
    }

    /// Takes in and shows what is new.
    pub(super) fn event(&mut self, event: &Event) -> Result<(), CommandError> {
        self.take(event)
            .map_err(|error| CommandError::output(&error))
    }

    fn take(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Task(task) => {
                self.about(&task.id, &task.context_id)?;
                self.status(&task.status)?;
                for artifact in &task.artifacts {
                    self.artifact(&artifact.id, &artifact.parts, false)?;
                }
            }
            Event::Message(message) => {
                self.replied = true;
                self.context = message.context_id.clone();
                self.message(message)?;
            }
            Event::Status(update) => {
                self.about(&update.task_id, &update.context_id)?;
                self.status(&update.status)?;
            }
            Event::Artifact(update) => {
                self.about(&update.task_id, &update.context_id)?;
                self.artifact(&update.artifact.id, &update.artifact.parts, update.append)?;
            }
        }
        self.out.flush()
    }

    fn about(&mut self, task: &TaskId, context: &ContextId) -> io::Result<()> {
        if self.task.is_none() && self.form.early {
            self.write_note(&format!("task {task}"))?;
        }
        self.task = Some(task.clone());
        self.context = Some(context.clone());
        Ok(())
    }

    fn status(&mut self, status: &TaskStatus) -> io::Result<()> {
        self.state = Some(status.state);
        let known = self.said.as_ref().map(|message| message.id.clone());
        self.said.clone_from(&status.message);
        if let Some(message) = &status.message
            && self.form.early
            && !self.is_over()
            && known.as_ref() != Some(&message.id)
        {
            self.write_note(&message.text())?;
        }
        Ok(())
    }

    fn artifact(&mut self, id: &ArtifactId, parts: &[Part], append: bool) -> io::Result<()> {
        let text: String = parts.iter().filter_map(Part::as_text).collect();
        let shown = self.artifacts.entry(id.clone()).or_default();
        let (new, others) = if append {
            shown.text.push_str(&text);
            (text, 0)
        } else {
            let new = match text.strip_prefix(shown.text.as_str()) {
                Some(new) => new.to_owned(),
                None => {
                    // Another text in the place of the one that was shown.
                    self.current = None;
                    text.clone()
                }
            };
            shown.text = text;
            (new, shown.others)
        };
        let mut count = 0;
        let others: Vec<&Part> = parts
            .iter()
            .filter(|part| part.as_text().is_none())
            .inspect(|_| count += 1)
            .skip(others)
            .collect();
        shown.others = if append { shown.others + count } else { count };
        if !new.is_empty() {
            if self.current.as_ref() != Some(id) {
                self.end_line()?;
                self.current = Some(id.clone());
            }
            self.answer(&new)?;
        }
        for part in others {
            self.other(part)?;
        }
        Ok(())
    }

    /// A message as an answer.
    fn message(&mut self, message: &Message) -> io::Result<()> {
        self.current = None;
        for part in &message.parts {
            self.end_line()?;
            match part.as_text() {
                Some(text) => self.answer(text)?,
                None => self.other(part)?,
            }
        }
        Ok(())
    }

    /// A part that is not text.
    fn other(&mut self, part: &Part) -> io::Result<()> {
        let name = part.filename.as_deref();
        let media_type = part.effective_media_type();
        let called = name.map(|name| format!(" {name:?}")).unwrap_or_default();
        let typed = media_type
            .map(|name| format!(", {name}"))
            .unwrap_or_default();
        match &part.content {
            PartContent::Text(_) => Ok(()),
            PartContent::Data(value) => {
                self.end_line()?;
                self.current = None;
                self.answer(&format!("{value}\n"))
            }
            PartContent::Url(url) => self.write_note(&format!("[file{called}{typed}, at {url}]")),
            PartContent::Raw(bytes) => {
                let size = bytes.len();
                let Some(folder) = &self.folder else {
                    let text = format!("[file{called}{typed}, {size} bytes; --save DIR keeps it]");
                    return self.write_note(&text);
                };
                let path = folder.keep(name, media_type, bytes)?;
                self.write_note(&format!(
                    "[file{called}{typed}, {size} bytes: {}]",
                    path.display()
                ))
            }
        }
    }

    fn answer(&mut self, words: &str) -> io::Result<()> {
        self.answered |= !words.is_empty();
        if self.form.json || words.is_empty() {
            return Ok(());
        }
        self.in_line = !words.ends_with('\n');
        if self.form.harmless_answer {
            self.out.write_all(text::plain(words).as_bytes())
        } else {
            self.out.write_all(words.as_bytes())
        }
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.in_line) {
            self.out.write_all(b"\n")
        } else {
            Ok(())
        }
    }

    fn write_note(&mut self, words: &str) -> io::Result<()> {
        if self.form.quiet {
            return Ok(());
        }
        // On a terminal both meet: a note begins a line of its own.
        if self.form.harmless_answer && self.in_line {
            self.end_line()?;
            self.out.flush()?;
        }
        writeln!(self.notes, "{}", text::plain(words))
    }

    /// Says something about the answer.
    pub(super) fn note(&mut self, words: &str) -> Result<(), CommandError> {
        self.write_note(words)
            .map_err(|error| CommandError::output(&error))
    }

    /// Prints the server's JSON, where that is wanted.
    pub(super) fn json(&mut self, raw: &str) -> Result<(), CommandError> {
        if !self.form.json {
            return Ok(());
        }
        let written = writeln!(self.out, "{raw}").and_then(|()| self.out.flush());
        written.map_err(|error| CommandError::output(&error))
    }

    /// Prints a task's JSON in the shape that a send answers with.
    pub(super) fn task_json(&mut self, raw: &str) -> Result<(), CommandError> {
        match self.version {
            ProtocolVersion::V0_3 => self.json(raw),
            ProtocolVersion::V1_0 => self.json(&format!("{{\"task\":{raw}}}")),
        }
    }

    /// Shows what is left: the last status, where the task stands.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let said = self.said.take();
        match (self.state, &said) {
            (Some(TaskState::Completed), Some(message)) if !self.answered => {
                self.message(message)?;
            }
            (Some(TaskState::Completed), Some(message)) => self.write_note(&message.text())?,
            // A question is for the user, whatever else is not.
            (Some(state), Some(message)) if state.is_interrupted() => {
                self.end_line()?;
                self.out.flush()?;
                writeln!(self.notes, "{}", text::plain(&message.text()))?;
            }
            _ => {}
        }
        self.said = said;
        self.end_line()?;
        self.out.flush()?;
        let (Some(task), Some(state)) = (&self.task, self.state) else {
            return Ok(());
        };
        let context = self
            .context
            .as_ref()
            .map(|c| format!(" of context {c}"))
            .unwrap_or_default();
        let mut words = format!("task {task}{context}: {}", name(state));
        if state.is_interrupted() {
            words += &format!("; --task {task} continues it");
        }
        self.write_note(&words)
    }

    /// How it ended.
    pub(super) fn outcome(&self) -> Result<(), CommandError> {
        let (Some(TaskState::Failed | TaskState::Rejected | TaskState::Canceled), Some(state)) =
            (self.state, self.state)
        else {
            return Ok(());
        };
        let verb = match state {
            TaskState::Failed => "failed",
            TaskState::Rejected => "was rejected",
            _ => "was canceled",
        };
        let reason = self
            .said
            .as_ref()
            .map(Message::text)
            .filter(|text| !text.is_empty());
        let reason = reason
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default();
        Err(CommandError::new(
            Exit::Failed,
            format!("the task {verb}{reason}"),
        ))
    }
}

/// A state's name for people.
fn name(state: TaskState) -> &'static str {
    match state {
        TaskState::Unspecified => "in an unknown state",
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::InputRequired => "waiting for an answer",
        TaskState::AuthRequired => "waiting for an authentication",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Canceled => "canceled",
        TaskState::Rejected => "rejected",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuncio_core::{Artifact, ArtifactUpdate, MessageId, Metadata, Role, StatusUpdate, Task};

    fn show(form: Form) -> Show<Vec<u8>, Vec<u8>> {
        Show::new(Vec::new(), Vec::new(), form, None)
    }

    fn ids() -> (TaskId, ContextId) {
        (TaskId::new("t").unwrap(), ContextId::new("c").unwrap())
    }

    fn says(text: &str) -> Message {
        Message::new(
            MessageId::new(text).unwrap(),
            Role::Agent,
            vec![Part::text(text)],
        )
    }

    fn status(state: TaskState, message: Option<Message>) -> TaskStatus {
        TaskStatus {
            state,
            message,
            timestamp: None,
        }
    }

    fn changed(state: TaskState, message: Option<Message>) -> Event {
        let (task_id, context_id) = ids();
        let status = status(state, message);
        Event::Status(StatusUpdate {
            task_id,
            context_id,
            status,
            metadata: Metadata::new(),
        })
    }

    fn artifact(id: &str, parts: Vec<Part>) -> Artifact {
        Artifact::new(ArtifactId::new(id).unwrap(), parts)
    }

    fn chunk(id: &str, text: &str, append: bool) -> Event {
        let (task_id, context_id) = ids();
        Event::Artifact(ArtifactUpdate {
            task_id,
            context_id,
            artifact: artifact(id, vec![Part::text(text)]),
            append,
            last_chunk: false,
            metadata: Metadata::new(),
        })
    }

    fn task(status: TaskStatus, artifacts: Vec<Artifact>) -> Event {
        let (id, context_id) = ids();
        let (history, metadata) = (Vec::new(), Metadata::new());
        Event::Task(Task {
            id,
            context_id,
            status,
            artifacts,
            history,
            metadata,
        })
    }

    fn shown(form: Form, events: &[Event]) -> (String, String, Result<(), CommandError>) {
        let mut show = show(form);
        for event in events {
            show.event(event).unwrap();
        }
        show.finish().unwrap();
        let outcome = show.outcome();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(show.out), text(show.notes), outcome)
    }

    #[test]
    fn a_text_is_written_once_however_it_comes() {
        let done = || status(TaskState::Completed, None);
        let streamed = [
            task(status(TaskState::Submitted, None), vec![]),
            chunk("a", "one ", false),
            chunk("a", "two ", true),
            // Broken off, and a snapshot that knows more.
            task(
                status(TaskState::Working, None),
                vec![artifact(
                    "a",
                    vec![Part::text("one "), Part::text("two thr")],
                )],
            ),
            chunk("a", "ee", true),
            chunk("b", "other", false),
            changed(TaskState::Completed, None),
        ];
        let (out, notes, outcome) = shown(
            Form {
                early: true,
                ..Form::default()
            },
            &streamed,
        );
        assert_eq!(out, "one two three\nother\n");
        assert_eq!(notes, "task t\ntask t of context c: completed\n");
        assert_eq!(outcome, Ok(()));
        let parts = |texts: &[&str]| texts.iter().map(|&text| Part::text(text)).collect();
        let whole = [task(
            done(),
            vec![
                artifact("a", parts(&["one ", "two three"])),
                artifact("b", parts(&["other"])),
            ],
        )];
        assert_eq!(shown(Form::default(), &whole).0, out);
    }

    #[test]
    fn a_replaced_text_is_written_anew() {
        let events = [chunk("a", "draft", false), chunk("a", "final", false)];
        assert_eq!(shown(Form::default(), &events).0, "draft\nfinal\n");
    }

    #[test]
    fn without_artifacts_the_last_word_is_the_answer() {
        let last = || status(TaskState::Completed, Some(says("done")));
        let (out, notes, _) = shown(Form::default(), &[task(last(), vec![])]);
        assert_eq!(
            (out.as_str(), notes.as_str()),
            ("done\n", "task t of context c: completed\n")
        );
        let with = [task(last(), vec![artifact("a", vec![Part::text("x")])])];
        let (out, notes, _) = shown(Form::default(), &with);
        assert_eq!(out, "x\n");
        assert!(notes.starts_with("done\n"), "{notes}");
        assert_eq!(
            shown(Form::default(), &[Event::Message(says("hi"))]).0,
            "hi\n"
        );
    }

    #[test]
    fn a_question_is_asked_also_when_quiet() {
        let asked = [changed(TaskState::InputRequired, Some(says("which?")))];
        let (out, notes, outcome) = shown(Form::default(), &asked);
        assert_eq!(out, "");
        assert!(
            notes.starts_with("which?\n") && notes.contains("--task t"),
            "{notes}"
        );
        assert_eq!(outcome, Ok(()));
        assert_eq!(
            shown(
                Form {
                    quiet: true,
                    ..Form::default()
                },
                &asked
            )
            .1,
            "which?\n"
        );
    }

    #[test]
    fn a_failed_task_fails_the_command() {
        for (state, verb) in [
            (TaskState::Failed, "the task failed: no luck"),
            (TaskState::Rejected, "the task was rejected: no luck"),
            (TaskState::Canceled, "the task was canceled: no luck"),
        ] {
            let (_, _, outcome) = shown(Form::default(), &[changed(state, Some(says("no luck")))]);
            assert_eq!(outcome.unwrap_err().to_string(), verb);
        }
    }

    #[test]
    fn files_are_described_and_data_is_shown() {
        let parts = vec![
            Part::raw(b"123".to_vec(), "application/pdf").named("a\u{1b}[2J.pdf"),
            Part::url("https://a.example/x"),
            Part::data(serde_json::json!({"n": 1})),
        ];
        let (out, notes, _) = shown(
            Form::default(),
            &[task(
                status(TaskState::Completed, None),
                vec![artifact("a", parts)],
            )],
        );
        assert_eq!(out, "{\"n\":1}\n");
        assert!(notes.contains("application/pdf, 3 bytes"), "{notes}");
        assert!(notes.contains("at https://a.example/x"), "{notes}");
        assert!(!notes.contains('\u{1b}'));
    }

    #[test]
    fn a_terminal_is_not_steered_and_a_pipe_gets_every_byte() {
        let event = [chunk("a", "a\u{1b}[2Jb", false)];
        assert_eq!(shown(Form::default(), &event).0, "a\u{1b}[2Jb\n");
        let form = Form {
            harmless_answer: true,
            ..Form::default()
        };
        assert_eq!(shown(form, &event).0, "a\u{fffd}[2Jb\n");
    }

    #[test]
    fn json_is_the_servers() {
        let mut show = show(Form {
            json: true,
            ..Form::default()
        });
        show.event(&task(status(TaskState::Completed, Some(says("x"))), vec![]))
            .unwrap();
        show.json("{\"raw\":1}").unwrap();
        show.task_json("{}").unwrap();
        show.speak(ProtocolVersion::V0_3);
        show.task_json("{}").unwrap();
        show.finish().unwrap();
        let out = String::from_utf8(show.out).unwrap();
        assert_eq!(out, "{\"raw\":1}\n{\"task\":{}}\n{}\n");
    }
}
