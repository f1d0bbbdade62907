//! `nuncio send`: a message to an agent, and its answer.
//!
//! The answer goes to standard output and nothing else does: what there is to say about it (the
//! task, its state, a question, files) goes to standard error. With `--json` the answer is the
//! server's own JSON.

mod compose;
mod follow;
mod save;
mod show;

use crate::{
    client::{Client, ConnectArgs, Protocol},
    exit::{self, CommandError, Exit},
};
use nuncio_core::{Event, Request, Response, SendMessage};
use save::Folder;
use show::{Form, Show};
use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
    time::Duration,
};

/// Arguments of `nuncio send`.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct SendArgs {
    /// Where the agent is; its card says the rest. A card's own URL or file will do.
    #[arg(required_unless_present = "endpoint")]
    url: Option<String>,
    /// What to say; - reads it from standard input.
    text: Vec<String>,
    /// Calls this JSON-RPC endpoint and reads no card; all that is not an option is then text.
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// The version to speak; the newest that the card offers where this is not said.
    #[arg(long, value_name = "VERSION")]
    protocol: Option<Protocol>,
    /// Sends a file along; can be given several times.
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<PathBuf>,
    /// Sends a JSON value along; can be given several times.
    #[arg(long = "data", value_name = "JSON")]
    data: Vec<String>,
    /// The task to continue.
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// The conversation to continue.
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// Prints the answer as it comes. A connection that breaks is made again.
    #[arg(long, conflicts_with = "no_wait")]
    stream: bool,
    /// Does not wait for the answer: prints the task's id and ends.
    #[arg(long)]
    no_wait: bool,
    /// Waits no longer than this; for ever where it is not said. The task goes on.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Asks for the last so many messages of the task's history; seen with --json.
    #[arg(long, value_name = "N")]
    history: Option<u32>,
    /// A media type that is wanted for the answer; can be given several times.
    #[arg(long = "output-mode", value_name = "TYPE")]
    output_modes: Vec<String>,
    /// Keeps the answer's files in this folder.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Prints the server's JSON; with --stream a line for each event.
    #[arg(long)]
    json: bool,
    /// Says nothing but the answer, a question and errors.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// A number of seconds, as arguments have it.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let wanted = || "must be a number of seconds greater than 0".to_owned();
    let seconds: f64 = text.parse().map_err(|_| wanted())?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| wanted())?;
    if time.is_zero() {
        Err(wanted())
    } else {
        Ok(time)
    }
}

/// Sends, waits and shows.
pub(crate) async fn run(args: SendArgs) -> Result<(), CommandError> {
    let form = Form {
        json: args.json,
        quiet: args.quiet,
        early: args.stream,
        harmless_answer: io::stdout().is_terminal(),
    };
    let mut show = Show::new(
        io::stdout(),
        io::stderr(),
        form,
        args.save.clone().map(Folder::new),
    );
    let sent = match args.timeout {
        None => send(&args, &mut show).await,
        Some(time) => match tokio::time::timeout(time, send(&args, &mut show)).await {
            Ok(sent) => sent,
            Err(_elapsed) => Err(timed_out(time, show.task())),
        },
    };
    // What there is of an answer is shown whole, also where the rest of it failed.
    let finished = show.finish().map_err(|error| CommandError::output(&error));
    sent.and(finished)?;
    show.outcome()
}

fn timed_out(time: Duration, task: Option<&nuncio_core::TaskId>) -> CommandError {
    let seconds = time.as_secs_f32();
    let text = match task {
        Some(id) => format!("task {id} was not done within {seconds} s; it goes on"),
        None => format!("there was no answer within {seconds} s"),
    };
    CommandError::new(Exit::TimedOut, text)
}

async fn send<O: Write, E: Write>(
    args: &SendArgs,
    show: &mut Show<O, E>,
) -> Result<(), CommandError> {
    let (connection, text) = match (&args.endpoint, &args.url) {
        (Some(endpoint), url) => {
            let text = url.iter().chain(&args.text).map(String::as_str).collect();
            (args.connect.endpoint(endpoint)?, text)
        }
        (None, Some(url)) => {
            // What is wrong with the message is said before anybody is asked for a card.
            (
                args.connect.connect(url).await?,
                args.text.iter().map(String::as_str).collect(),
            )
        }
        (None, None) => return Err(CommandError::usage("where to send it is missing")),
    };
    let text: Vec<&str> = text;
    let client = connection.client(args.protocol.map(Into::into))?;
    let message = compose::message(args, &text)?;
    show.speak(client.version());
    if args.stream && client.streams() == Some(false) {
        show.note("the agent does not stream: waiting for the whole answer")?;
    } else if args.stream {
        return follow::stream(&client, message, show).await;
    }
    call(&client, message, args.no_wait, show).await
}

async fn call<O: Write, E: Write>(
    client: &Client,
    message: SendMessage,
    no_wait: bool,
    show: &mut Show<O, E>,
) -> Result<(), CommandError> {
    let history = message.configuration.history_length;
    let answer = client.call(&Request::SendMessage(message)).await?;
    let event = match answer.response {
        Response::SentTask(task) => Event::Task(task),
        Response::SentMessage(message) => Event::Message(message),
        _ => {
            return Err(CommandError::new(
                Exit::Unreachable,
                "it answered something else",
            ));
        }
    };
    show.event(&event)?;
    if no_wait || show.is_over() {
        return show.json(&answer.raw);
    }
    // The server waited as long as it does, and the task is still at work.
    follow::poll(client, history, show).await
}
