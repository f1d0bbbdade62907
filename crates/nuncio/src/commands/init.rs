//! `nuncio init`: the commented configuration.

use crate::{config::REFERENCE, exit::CommandError};
use std::{fs::OpenOptions, io::Write, path::PathBuf};

/// Arguments of `nuncio init`.
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// Where to write it; `-` for standard output.
    #[arg(default_value = "nuncio.toml")]
    path: PathBuf,
    /// Overwrites a file that is there.
    #[arg(long)]
    force: bool,
}

/// Writes the reference.
pub(crate) fn run(args: &InitArgs) -> Result<(), CommandError> {
    let path = &args.path;
    if path.as_os_str() == "-" {
        print!("{REFERENCE}");
        return Ok(());
    }
    let mut options = OpenOptions::new();
    options.write(true);
    if args.force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(REFERENCE.as_bytes()));
    match written {
        Ok(()) => {
            println!(
                "wrote {}: edit it, then nuncio serve --config {0}",
                path.display()
            );
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let text = format!("{} is there already: --force overwrites it", path.display());
            Err(CommandError::usage(text))
        }
        Err(error) => Err(CommandError::usage(format!("{}: {error}", path.display()))),
    }
}
