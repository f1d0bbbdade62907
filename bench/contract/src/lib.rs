//! What every server under test agrees on: what a message's text asks for, and how a server says
//! where it listens. `nuncio serve --agent bench` keeps to the same.

use axum::{Router, serve::ListenerExt};
use std::{io, io::Write, time::Duration};
use tokio::net::TcpListener;

/// What a message asks of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask<'t> {
    /// One artifact with the text echoed: anything that is none of the others.
    Echo(&'t str),
    /// `stream:N`: so many chunks of one artifact, as fast as they go.
    Stream {
        /// How many.
        chunks: u64,
    },
    /// `fanout:N:START_MS:GAP_MS`: a pause for followers to gather, then chunks.
    Fanout {
        /// How many.
        chunks: u64,
        /// The pause before the first.
        start: Duration,
        /// The pause between two.
        gap: Duration,
    },
}

impl<'t> Ask<'t> {
    /// Reads a text. Numbers that are missing or wrong are 10 chunks and no pause.
    #[must_use]
    pub fn of(text: &'t str) -> Self {
        let number = |fields: &mut std::str::Split<'_, char>, or| {
            fields
                .next()
                .and_then(|field| field.parse().ok())
                .unwrap_or(or)
        };
        if let Some(asked) = text.strip_prefix("stream:") {
            Self::Stream {
                chunks: number(&mut asked.split(':'), 10),
            }
        } else if let Some(asked) = text.strip_prefix("fanout:") {
            let mut fields = asked.split(':');
            Self::Fanout {
                chunks: number(&mut fields, 10),
                start: Duration::from_millis(number(&mut fields, 0)),
                gap: Duration::from_millis(number(&mut fields, 0)),
            }
        } else {
            Self::Echo(text)
        }
    }
}

/// Takes the port named by `PORT`, or a free one, on loopback.
///
/// # Errors
/// Where the port can't be had, or `PORT` is none.
pub async fn listen() -> io::Result<TcpListener> {
    let port = match std::env::var("PORT") {
        Ok(port) => port.parse().map_err(io::Error::other)?,
        Err(_) => 0,
    };
    TcpListener::bind(("127.0.0.1", port)).await
}

/// Says where the server is, in the line that the runner waits for, and serves without end.
///
/// `TCP_NODELAY` is set unless `NAGLE` is: what axum does by itself holds back every second small
/// write of a stream for 40 ms.
///
/// # Errors
/// Where standard output or the listener fails.
pub async fn serve(listener: TcpListener, app: Router) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "listening on http://{}", listener.local_addr()?)?;
    out.flush()?;
    drop(out);
    if std::env::var_os("NAGLE").is_some() {
        return axum::serve(listener, app).await;
    }
    // A connection that ended already has no need of it.
    axum::serve(
        listener.tap_io(|stream| drop(stream.set_nodelay(true))),
        app,
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read() {
        assert_eq!(Ask::of("hello"), Ask::Echo("hello"));
        assert_eq!(Ask::of("stream:3"), Ask::Stream { chunks: 3 });
        assert_eq!(Ask::of("stream:many"), Ask::Stream { chunks: 10 });
        let (start, gap) = (Duration::from_millis(20), Duration::ZERO);
        assert_eq!(
            Ask::of("fanout:5:20"),
            Ask::Fanout {
                chunks: 5,
                start,
                gap
            }
        );
    }
}
