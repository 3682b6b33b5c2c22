//! Frames from values: one compact JSON object, one `\n`.

use alloc::vec::Vec;
use core::fmt;

use serde::Serialize;

use super::Id;
use super::append::append;

/// Appends a request; returns how many bytes it has. Params that serialize to `null` are left out, since JSON-RPC
/// 2.0 §4.2 has no such params.
///
/// # Errors
/// What serde_json reports of `params`; `out` is as before.
pub fn encode_request(
    out: &mut Vec<u8>,
    id: Id<'_>,
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> Result<usize, EncodeError> {
    let mut line = LineWriter::new(out);
    line.text(r#"{"jsonrpc":"2.0","id":"#).text(id.get()).text(r#","method":"#).string(method);
    line.params(params)?;
    Ok(line.finish())
}

/// Appends a notification; returns how many bytes it has. Params as in [`encode_request`].
///
/// # Errors
/// What serde_json reports of `params`; `out` is as before.
pub fn encode_notification(
    out: &mut Vec<u8>,
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> Result<usize, EncodeError> {
    let mut line = LineWriter::new(out);
    line.text(r#"{"jsonrpc":"2.0","method":"#).string(method);
    line.params(params)?;
    Ok(line.finish())
}

/// As [`encode_notification`], of a method whose name needs no escapes, with params, an object, that are written piece by
/// piece.
pub(crate) fn encode_notification_with(
    out: &mut Vec<u8>,
    method: &str,
    params: impl FnOnce(&mut LineWriter<'_>) -> Result<(), EncodeError>,
) -> Result<usize, EncodeError> {
    let mut line = LineWriter::new(out);
    line.text(r#"{"jsonrpc":"2.0","method":""#).text(method).text(r#"","params":"#);
    params(&mut line)?;
    Ok(line.finish())
}

/// Appends a response with a result; returns how many bytes it has.
///
/// # Errors
/// What serde_json reports of `result`; `out` is as before.
pub fn encode_result(out: &mut Vec<u8>, id: Id<'_>, result: &(impl Serialize + ?Sized)) -> Result<usize, EncodeError> {
    let mut line = LineWriter::new(out);
    line.text(r#"{"jsonrpc":"2.0","id":"#).text(id.get()).text(r#","result":"#).value(result)?;
    Ok(line.finish())
}

/// Appends a response with an error; returns how many bytes it has. `data` is left out where it is `None`.
///
/// # Errors
/// What serde_json reports of `data`; `out` is as before.
pub fn encode_error(
    out: &mut Vec<u8>,
    id: Id<'_>,
    code: i64,
    message: &str,
    data: Option<&(impl Serialize + ?Sized)>,
) -> Result<usize, EncodeError> {
    let mut line = LineWriter::new(out);
    line.text(r#"{"jsonrpc":"2.0","id":"#).text(id.get()).text(r#","error":{"code":"#).value(&code)?;
    line.text(r#","message":"#).string(message);
    if let Some(data) = data {
        line.text(r#","data":"#).value(data)?;
    }
    line.text("}");
    Ok(line.finish())
}

/// A value of the caller's that cannot be written as JSON.
#[derive(Debug)]
pub struct EncodeError(serde_json::Error);

impl From<serde_json::Error> for EncodeError {
    fn from(error: serde_json::Error) -> Self {
        Self(error)
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot write the value as JSON")
    }
}

impl core::error::Error for EncodeError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Writes one line at the end of `out`; takes it back if dropped before [`finish`](Self::finish).
pub(crate) struct LineWriter<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    finished: bool,
}

impl<'o> LineWriter<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start, finished: false }
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.raw(text.as_bytes())
    }

    /// What serde_json has written before.
    pub(crate) fn raw(&mut self, json: &[u8]) -> &mut Self {
        self.out.extend_from_slice(json);
        self
    }

    pub(crate) fn string(&mut self, text: &str) -> &mut Self {
        // A string always has a JSON form.
        let _ = self.value(text);
        self
    }

    pub(crate) fn value(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), EncodeError> {
        append(self.out, value).map_err(EncodeError)
    }

    fn params(&mut self, params: &(impl Serialize + ?Sized)) -> Result<(), EncodeError> {
        const NAME: &str = r#","params":"#;
        let before = self.out.len();
        self.text(NAME).value(params)?;
        if self.out.get(before + NAME.len()..) == Some(b"null") {
            self.out.truncate(before);
        }
        Ok(())
    }

    /// Closes the frame and the line. A raw line end can only stand between tokens (the caller's own raw values may
    /// hold white space): it becomes a space, so the frame stays one line and says the same.
    pub(super) fn finish(mut self) -> usize {
        self.out.push(b'}');
        let mut rest = self.out.get_mut(self.start..).unwrap_or_default();
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            let (line_end, behind) = rest.split_at_mut(at + 1);
            line_end.iter_mut().last().into_iter().for_each(|byte| *byte = b' ');
            rest = behind;
        }
        self.out.push(b'\n');
        self.finished = true;
        self.out.len() - self.start
    }
}

impl Drop for LineWriter<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.out.truncate(self.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_in_pieces_make_the_same_line() {
        let (mut whole, mut pieces) = (b"before\n".to_vec(), b"before\n".to_vec());
        let params = serde_json::json!({"a": [1, 2]});
        let len = encode_notification(&mut whole, "n", &params).unwrap();
        let len_of_pieces = encode_notification_with(&mut pieces, "n", |line| {
            line.text(r#"{"a":"#).raw(b"[1,").value(&2)?;
            line.text("]}");
            Ok(())
        });
        assert_eq!((len_of_pieces.unwrap(), pieces.len()), (len, len + 7));
        assert_eq!(pieces, whole);
        encode_notification_with(&mut pieces, "n", |line| {
            line.text("{");
            line.value(&alloc::collections::BTreeMap::from([([1], 1)]))
        })
        .unwrap_err();
        assert_eq!(pieces, whole, "what cannot be written leaves nothing");
    }
}
