//! A command's standard output, line by line and never more of it than a bound.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;

/// A line with its newline; or, of one that is too long, as much as may be held.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    /// Whether the line ends here, be it with the output.
    pub(super) ends_line: bool,
}

impl Piece {
    /// The piece as text. What is not UTF-8 becomes U+FFFD: an artifact of text stays one, and
    /// the rest of the output with it. A command with binary output is one for `--json`.
    pub(super) fn into_text(self) -> String {
        String::from_utf8(self.bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

/// Cuts a stream of bytes into [`Piece`]s.
#[derive(Debug)]
pub(super) struct Lines<R> {
    source: Option<BufReader<R>>,
    line: Vec<u8>,
    limit: usize,
    read: u64,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Pieces of at most `limit` bytes.
    pub(super) fn new(source: R, limit: usize) -> Self {
        let source = Some(BufReader::with_capacity(READ_BYTES, source));
        Self {
            source,
            line: Vec::new(),
            limit,
            read: 0,
        }
    }

    /// Whether all has been read.
    pub(super) fn ended(&self) -> bool {
        self.source.is_none()
    }

    /// Bytes read so far.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// The next piece; `None` at the end. Loses nothing where it is dropped while waiting.
    pub(super) async fn next(&mut self) -> Option<Piece> {
        loop {
            let source = self.source.as_mut()?;
            // A pipe that can't be read has nothing more to say.
            let ready = source.fill_buf().await.unwrap_or_default();
            if ready.is_empty() {
                self.source = None;
                let bytes = std::mem::take(&mut self.line);
                return (!bytes.is_empty()).then_some(Piece {
                    bytes,
                    ends_line: true,
                });
            }
            let room = &ready[..ready.len().min(self.limit - self.line.len())];
            let newline = room.iter().position(|byte| *byte == b'\n');
            let taken = newline.map_or(room.len(), |at| at + 1);
            self.line.extend_from_slice(&room[..taken]);
            source.consume(taken);
            self.read += taken as u64;
            if newline.is_some() {
                let bytes = std::mem::take(&mut self.line);
                return Some(Piece {
                    bytes,
                    ends_line: true,
                });
            }
            if self.line.len() >= self.limit {
                let rest = self.line.split_off(whole_characters(&self.line));
                let bytes = std::mem::replace(&mut self.line, rest);
                return Some(Piece {
                    bytes,
                    ends_line: false,
                });
            }
        }
    }
}

/// How many bytes there are before a character that may be cut off by the end.
fn whole_characters(bytes: &[u8]) -> usize {
    let cut_off = bytes
        .utf8_chunks()
        .last()
        .map_or(0, |chunk| chunk.invalid().len());
    match bytes.len() - cut_off {
        0 => bytes.len(),
        whole => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        pin::Pin,
        task::{Context, Poll},
    };
    use tokio::io::ReadBuf;

    async fn pieces(input: &[u8], limit: usize) -> Vec<(String, bool)> {
        let mut lines = Lines::new(input, limit);
        let mut pieces = Vec::new();
        while let Some(piece) = lines.next().await {
            let ends_line = piece.ends_line;
            pieces.push((piece.into_text(), ends_line));
        }
        assert!(lines.ended());
        pieces
    }

    fn piece(text: &str, ends_line: bool) -> (String, bool) {
        (text.to_owned(), ends_line)
    }

    #[tokio::test]
    async fn lines_keep_their_newlines() {
        let whole = [
            piece("one\n", true),
            piece("\n", true),
            piece("\r\n", true),
            piece("x", true),
        ];
        assert_eq!(pieces(b"one\n\n\r\nx", 100).await, whole);
        assert_eq!(pieces(b"", 100).await, []);
    }

    #[tokio::test]
    async fn long_lines_are_cut_between_characters() {
        assert_eq!(
            pieces("aé東b\n".as_bytes(), 4).await,
            [piece("aé", false), piece("東b", false), piece("\n", true)]
        );
        assert_eq!(
            pieces("🦀🦀".as_bytes(), 4).await,
            [piece("🦀", false), piece("🦀", false)]
        );
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_are_marked_and_cost_nothing_else() {
        assert_eq!(
            pieces(b"a\xffb\nc\xe6\x9d\n\xf0\x9f", 100).await,
            [
                piece("a\u{fffd}b\n", true),
                piece("c\u{fffd}\n", true),
                piece("\u{fffd}", true)
            ]
        );
        let binary = pieces(&[0xff; 10], 4).await;
        assert_eq!(
            binary
                .iter()
                .map(|(text, _)| text.chars().count())
                .sum::<usize>(),
            10
        );
    }

    /// A line that never ends.
    struct Endless(u64);

    impl AsyncRead for Endless {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            let length = buffer.remaining();
            buffer.put_slice(&vec![b'x'; length]);
            self.0 += length as u64;
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn an_endless_line_is_read_no_further_than_it_is_taken() {
        const LIMIT: usize = 64 << 10;
        let mut lines = Lines::new(Endless(0), LIMIT);
        for taken in 1..=1000_u64 {
            let piece = lines.next().await.unwrap();
            assert_eq!((piece.bytes.len(), piece.ends_line), (LIMIT, false));
            assert!(lines.line.capacity() <= 2 * LIMIT);
            let read = lines.source.as_ref().unwrap().get_ref().0;
            assert!(read <= taken * LIMIT as u64 + READ_BYTES as u64);
        }
    }
}
