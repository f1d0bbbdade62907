//! A task followed to where it rests: as a stream, or by asking.
//!
//! A stream may break; the task does not care. The client then subscribes to the task with the
//! id of the last event it has, and what it missed comes first. Where the server has no event
//! ids, its snapshot of the task says what was missed, and only what is new in it is shown. Where
//! a server does not let anyone come back, the task is asked for until it rests.

use super::show::Show;
use crate::{
    client::{Client, ClientError},
    exit::CommandError,
};
use nuncio_core::{ErrorKind, Event, Request, SendMessage, SubscribeToTask};
use std::{io::Write, time::Duration};
use tokio::time::sleep;

/// How long to wait before each try to come back; progress starts it anew.
const PAUSES_MS: [u64; 8] = [100, 300, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000];
/// How long to wait before asking again: at first, and at most.
const ASK_MS: (u64, u64) = (200, 3_000);

/// What to do about an error.
enum Next {
    /// Subscribe again.
    Retry,
    /// Ask instead.
    Ask,
    Fail(ClientError),
}

/// Sends and follows.
pub(super) async fn stream<O: Write, E: Write>(
    client: &Client,
    message: SendMessage,
    show: &mut Show<O, E>,
) -> Result<(), CommandError> {
    let history = message.configuration.history_length;
    let mut events = client
        .open(&Request::SendStreamingMessage(message), None)
        .await?;
    let (mut last, mut tries, mut again) = (None, 0, false);
    loop {
        let error = loop {
            match events.next().await {
                Ok(Some(streamed)) => {
                    show.event(&streamed.event)?;
                    show.json(&streamed.raw)?;
                    last = streamed.id.or(last);
                    // The first event of a continued task shows it as it was: still waiting for
                    // the message that has just been sent.
                    let stale = matches!(streamed.event, Event::Task(_)) && !again;
                    if show.has_ended() || (show.is_over() && !stale) {
                        return Ok(());
                    }
                    if !matches!(streamed.event, Event::Task(_)) {
                        tries = 0;
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        match error.map(next) {
            None if show.is_over() => return Ok(()),
            None | Some(Next::Retry) => {}
            Some(Next::Ask) if again => return poll(client, history, show).await,
            Some(Next::Ask) => return Err(unsupported()),
            Some(Next::Fail(error)) => return Err(error.into()),
        }
        let Some(id) = show.task().cloned() else {
            let text = "the stream ended before it said anything".to_owned();
            return Err(ClientError::Broken(text).into());
        };
        let subscribe = Request::SubscribeToTask(SubscribeToTask { id });
        again = true;
        events = loop {
            let Some(pause) = PAUSES_MS.get(tries) else {
                return poll(client, history, show).await;
            };
            if tries == 0 {
                show.note("the connection ended; connecting again")?;
            }
            tries += 1;
            sleep(Duration::from_millis(*pause)).await;
            match client.open(&subscribe, last.as_deref()).await.map_err(next) {
                Ok(events) => break events,
                Err(Next::Retry) => {}
                Err(Next::Ask) => return poll(client, history, show).await,
                Err(Next::Fail(error)) => return Err(error.into()),
            }
        };
    }
}

fn unsupported() -> CommandError {
    let text = "the agent does not stream: leave --stream out";
    CommandError::new(crate::exit::Exit::Failed, text)
}

fn next(error: ClientError) -> Next {
    match &error {
        ClientError::Unreachable { .. } | ClientError::Broken(_) => Next::Retry,
        ClientError::Remote(remote) => match remote.kind() {
            // Overload, most likely.
            Some(ErrorKind::Internal) => Next::Retry,
            Some(ErrorKind::UnsupportedOperation | ErrorKind::MethodNotFound) => Next::Ask,
            _ => Next::Fail(error),
        },
        _ => Next::Fail(error),
    }
}

/// Asks for the task until it rests.
pub(super) async fn poll<O: Write, E: Write>(
    client: &Client,
    history: Option<u32>,
    show: &mut Show<O, E>,
) -> Result<(), CommandError> {
    let Some(id) = show.task().cloned() else {
        return Ok(());
    };
    let (mut pause, most) = ASK_MS;
    let mut tries = 0;
    loop {
        match client.task(&id, history).await {
            Ok((task, raw)) => {
                tries = 0;
                show.event(&Event::Task(task))?;
                if show.is_over() {
                    return show.task_json(&raw);
                }
            }
            Err(error) => match (next(error), PAUSES_MS.get(tries)) {
                (Next::Retry, Some(_)) => tries += 1,
                (Next::Retry, None) | (Next::Ask, _) => {
                    let text = format!("task {id} could not be followed to its end");
                    return Err(CommandError::new(crate::exit::Exit::Unreachable, text));
                }
                (Next::Fail(error), _) => return Err(error.into()),
            },
        }
        sleep(Duration::from_millis(pause)).await;
        pause = (pause * 3 / 2).min(most);
    }
}
