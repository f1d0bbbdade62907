//! `nuncio check-config`: what is in effect, or what is wrong.

use super::serve::ServeArgs;
use crate::{config::StoreKind, exit::CommandError};

/// Loads the configuration as `serve` would, and prints it.
pub(crate) fn run(args: &ServeArgs) -> Result<(), CommandError> {
    let config = args.config()?;
    let store = match config.store()? {
        StoreKind::Memory => "memory".to_owned(),
        StoreKind::Sqlite(path) => format!("sqlite:{}", path.display()),
    };
    println!("# The configuration is good. In effect:");
    println!("# data folder {}", config.data().display());
    println!("# store {store}");
    println!("# API keys {}", config.keys().display());
    let toml = toml::to_string(&config).map_err(|e| CommandError::usage(e.to_string()))?;
    print!("{toml}");
    Ok(())
}
