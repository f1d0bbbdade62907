//! `nuncio keys`: API keys, made, listed, revoked.

use crate::{
    config::{Config, Overrides},
    exit::CommandError,
};
use nuncio_server::KeyFile;
use std::path::PathBuf;

/// Arguments of `nuncio keys`.
#[derive(Debug, clap::Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
    /// The configuration file.
    #[arg(long, env = "NUNCIO_CONFIG", global = true)]
    config: Option<PathBuf>,
    /// The folder of everything nuncio keeps.
    #[arg(long, global = true)]
    data: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum KeysCommand {
    /// Makes a key and prints it, once.
    Add {
        /// Whom the key stands for: whose tasks it shows.
        name: String,
    },
    /// Lists whom there are keys for.
    List,
    /// Revokes all keys of a name.
    Revoke {
        /// Whose keys.
        name: String,
    },
}

/// Does what is asked.
pub(crate) fn run(args: &KeysArgs) -> Result<(), CommandError> {
    let flags = Overrides {
        data: args.data.clone(),
        ..Overrides::default()
    };
    let path = Config::load(args.config.as_deref(), &flags)?.keys();
    let failed = |error: std::io::Error| CommandError::usage(error.to_string());
    match &args.command {
        KeysCommand::Add { name } => {
            let key = KeyFile::add(&path, name).map_err(failed)?;
            println!("{}", key.expose());
            eprintln!(
                "This is the only time the key of {name:?} is shown. Its hash is in {}.",
                path.display()
            );
        }
        KeysCommand::List => {
            for key in KeyFile::list(&path).map_err(failed)? {
                let fingerprint = key.sha256.get(..12).unwrap_or(&key.sha256);
                println!("{}\t{}\tsha256:{fingerprint}…", key.name, key.created);
            }
        }
        KeysCommand::Revoke { name } => match KeyFile::revoke(&path, name).map_err(failed)? {
            0 => return Err(CommandError::usage(format!("there is no key of {name:?}"))),
            1 => eprintln!("revoked the key of {name:?}"),
            n => eprintln!("revoked {n} keys of {name:?}"),
        },
    }
    Ok(())
}
