//! `nuncio map`: what a server answers to every operation, under both names.

mod observe;
mod render;

use crate::{
    client::{ConnectArgs, Protocol},
    exit::{self, CommandError},
};
use nuncio_core::ProtocolVersion;
use observe::{Row, observe};
use std::io::Write;

/// Arguments of `nuncio map`.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct MapArgs {
    /// Where the agent is; its card says the rest.
    #[arg(required_unless_present = "endpoint")]
    url: Option<String>,
    /// Calls this JSON-RPC endpoint and reads no card.
    #[arg(long, value_name = "URL", conflicts_with = "url")]
    endpoint: Option<String>,
    /// The version to speak; both where this is not said.
    #[arg(long, value_name = "VERSION")]
    protocol: Option<Protocol>,
    /// What to say in the messages that are sent.
    #[arg(long, default_value = "nuncio map")]
    message: String,
    /// Prints the table in Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Prints an array of JSON, an object for each operation and version.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Observes and prints.
pub(crate) async fn run(args: MapArgs) -> Result<(), CommandError> {
    let connection = match (&args.endpoint, &args.url) {
        (Some(endpoint), _) => args.connect.endpoint(endpoint)?,
        (None, Some(url)) => args.connect.connect(url).await?,
        (None, None) => return Err(CommandError::usage("the server's URL is missing")),
    };
    let versions = match args.protocol {
        Some(protocol) => vec![protocol.into()],
        None => ProtocolVersion::ALL.to_vec(),
    };
    let mut columns: Vec<(ProtocolVersion, Vec<Row>)> = Vec::new();
    for version in versions {
        let client = connection.client(Some(version))?;
        columns.push((version, observe(&client, &args.message).await?));
    }
    let text = if args.json {
        render::json(&columns)
    } else if args.markdown {
        render::markdown(&columns)
    } else {
        render::plain(&columns)
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .map_err(|error| CommandError::output(&error))
}
