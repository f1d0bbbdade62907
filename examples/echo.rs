//! An A2A agent in ten lines: `cargo run --example echo`, then
//! `nuncio send http://127.0.0.1:8080 hello`.

use nuncio_server::{Agent, Server, Turn, TurnResult, async_trait};

struct Echo;

#[async_trait]
impl Agent for Echo {
    async fn run(&self, turn: Turn) -> TurnResult {
        turn.text_artifact("echo", turn.message().text()).await?;
        turn.complete()
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8080".into());
    Server::builder(Echo).name("echo").serve(address).await
}
